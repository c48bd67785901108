// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "plan/onnx/element_type.h"
#include "plan/onnx/rules/rules.h"

namespace berth::internal::plan::onnx::rules {

namespace {

// The set of reduced axes. Nothing when one is out of range.
std::optional<std::vector<bool>> marked(const std::vector<std::int64_t>& axes, std::size_t rank) {
  std::vector<bool> marks(rank, false);
  for (const std::int64_t given : axes) {
    const auto axis = axis_of(given, rank);
    if (!axis) return std::nullopt;
    marks[*axis] = true;
  }
  return marks;
}

DimList without(const DimList& dims, const std::vector<bool>& marks, bool keep) {
  DimList out;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (!marks[i]) out.push_back(dims[i]);
    if (marks[i] && keep) out.push_back(1);
  }
  return out;
}

}  // namespace

// The further outputs have one number for each channel.
void batch_normalization(Call& call) {
  call.set(0, call.in(0));
  for (std::size_t i = 1; i < call.outputs(); ++i) call.set(i, call.in(i <= 2 ? i + 2 : 3));
}

// The mean and the deviation keep the axes that were normalised, with one element each.
void layer_normalization(Call& call) {
  const TensorType& x = call.in(0);
  call.set(0, x);
  const auto axis = axis_of(call.integer("axis", -1), x.dims.size());
  if (!x.ranked || !axis) return;
  DimList dims = x.dims;
  std::fill(dims.begin() + static_cast<std::ptrdiff_t>(*axis), dims.end(), 1);
  const std::int64_t elem = call.integer("stash_type", kFloat);
  call.set(1, elem, dims);
  call.set(2, elem, dims);
}

// Without axes all are reduced, or none if an attribute says so.
void reduce(Call& call) {
  const TensorType& x = call.in(0);
  call.set(0, TensorType::of(x.elem));
  if (!x.ranked) return;
  const bool keep = call.integer("keepdims", 1) != 0;
  const Call::Given axes = call.attribute_or_input("axes", 1);
  const bool none = !axes.given || (axes.ints != nullptr && axes.ints->empty());
  if (none && call.integer("noop_with_empty_axes", 0) != 0) return call.set(0, x);
  if (none) return call.set(0, x.elem, keep ? DimList(x.dims.size(), 1) : DimList());
  if (axes.ints == nullptr) return keep ? call.set(0, x.elem, DimList(x.dims.size(), kUnknownDim)) : void();
  if (const auto marks = marked(*axes.ints, x.dims.size())) call.set(0, x.elem, without(x.dims, *marks, keep));
}

void arg_reduce(Call& call) {
  const TensorType& x = call.in(0);
  call.set(0, TensorType::of(kInt64));
  if (!x.ranked) return;
  const auto marks = marked({call.integer("axis", 0)}, x.dims.size());
  if (marks) call.set(0, kInt64, without(x.dims, *marks, call.integer("keepdims", 1) != 0));
}

void top_k(Call& call) {
  const TensorType& x = call.in(0);
  call.set(0, TensorType::of(x.elem));
  call.set(1, TensorType::of(kInt64));
  const auto axis = axis_of(call.integer("axis", -1), x.dims.size());
  if (!x.ranked || !axis) return;
  DimList dims = x.dims;
  const auto* const given = call.known_ints(1);
  const std::int64_t k = given != nullptr && given->size() == 1 ? given->front() : call.integer("k", kUnknownDim);
  dims[*axis] = k >= 0 ? k : kUnknownDim;
  call.set(0, x.elem, dims);
  call.set(1, kInt64, dims);
}

}  // namespace berth::internal::plan::onnx::rules
