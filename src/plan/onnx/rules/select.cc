// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "plan/onnx/element_type.h"
#include "plan/onnx/rules/rules.h"
#include "plan/onnx/slice_range.h"

namespace berth::internal::plan::onnx::rules {

namespace {

// The part sizes of a Split. Without given sizes they are equal, except for a smaller last one.
std::optional<DimList> split_sizes(const Call& call, std::int64_t whole) {
  const std::size_t outputs = call.outputs();
  const Call::Given given = call.attribute_or_input("split", 1);
  if (given.given) {
    const bool fits = given.ints != nullptr && given.ints->size() == outputs;
    if (!fits || std::ranges::any_of(*given.ints, [](std::int64_t size) { return size < 0; })) return std::nullopt;
    return *given.ints;
  }
  const auto parts = static_cast<std::int64_t>(outputs);
  if (whole == kUnknownDim || parts == 0 || call.integer("num_outputs", parts) != parts) return std::nullopt;
  const std::int64_t each = whole / parts + (whole % parts != 0 ? 1 : 0);
  const std::int64_t others = dim_product(each, parts - 1);
  if (others == kUnknownDim || others > whole) return std::nullopt;
  DimList sizes(outputs, each);
  sizes.back() = whole - others;
  return sizes;
}

}  // namespace

void concat(Call& call) {
  const TensorType& first = call.in(0);
  call.set(0, TensorType::of(first.elem));
  const auto axis = axis_of(call.integer("axis", 1), first.dims.size());
  if (!first.ranked || !axis) return;
  DimList dims = first.dims;
  for (std::size_t i = 1; i < call.inputs(); ++i) {
    const TensorType& next = call.in(i);
    if (!next.ranked || next.dims.size() != dims.size()) return;
    for (std::size_t a = 0; a < dims.size(); ++a) {
      if (a == *axis) continue;
      if (dims[a] == kUnknownDim) dims[a] = next.dims[a];
      if (next.dims[a] != kUnknownDim && next.dims[a] != dims[a]) return;
    }
    dims[*axis] = dim_sum(dims[*axis], next.dims[*axis]);
  }
  call.set(0, first.elem, std::move(dims));
}

void split(Call& call) {
  const TensorType& x = call.in(0);
  const auto axis = axis_of(call.integer("axis", 0), x.dims.size());
  for (std::size_t i = 0; i < call.outputs(); ++i) call.set(i, TensorType::of(x.elem));
  if (!x.ranked || !axis) return;
  const auto sizes = split_sizes(call, x.dims[*axis]);
  for (std::size_t i = 0; i < call.outputs(); ++i) {
    DimList dims = x.dims;
    dims[*axis] = sizes ? (*sizes)[i] : kUnknownDim;
    call.set(i, x.elem, std::move(dims));
  }
}

void slice(Call& call) {
  const TensorType& x = call.in(0);
  call.set(0, TensorType::of(x.elem));
  const auto ranges = slice_ranges(call);
  if (!ranges) {
    if (x.ranked) call.set(0, x.elem, DimList(x.dims.size(), kUnknownDim));
    return;
  }
  DimList dims;
  for (const AxisRange& range : *ranges) dims.push_back(range.count);
  call.set(0, x.elem, std::move(dims));
}

// The shape of the indices replaces the axis.
void gather(Call& call) {
  const TensorType& x = call.in(0);
  const TensorType& indices = call.in(1);
  call.set(0, TensorType::of(x.elem));
  const auto axis = axis_of(call.integer("axis", 0), x.dims.size());
  if (!x.ranked || !indices.ranked || !axis) return;
  const auto at = x.dims.begin() + static_cast<std::ptrdiff_t>(*axis);
  DimList dims(x.dims.begin(), at);
  dims.insert(dims.end(), indices.dims.begin(), indices.dims.end());
  dims.insert(dims.end(), at + 1, x.dims.end());
  call.set(0, x.elem, std::move(dims));
}

void gather_elements(Call& call) {
  TensorType y = call.in(1);
  y.elem = call.in(0).elem;
  call.set(0, std::move(y));
}

void gather_nd(Call& call) {
  const TensorType& x = call.in(0);
  const TensorType& indices = call.in(1);
  const std::int64_t batch = call.integer("batch_dims", 0);
  call.set(0, TensorType::of(x.elem));
  if (!x.ranked || !indices.ranked || indices.dims.empty() || batch < 0) return;
  const std::int64_t depth = indices.dims.back();
  const auto rank = static_cast<std::int64_t>(x.dims.size());
  if (depth < 1 || batch > rank || depth > rank - batch) return;
  DimList dims(indices.dims.begin(), indices.dims.end() - 1);
  dims.insert(dims.end(), x.dims.begin() + batch + depth, x.dims.end());
  call.set(0, x.elem, std::move(dims));
}

void one_hot(Call& call) {
  const TensorType& indices = call.in(0);
  const std::int64_t elem = call.in(2).elem;
  call.set(0, TensorType::of(elem));
  if (!indices.ranked) return;
  const auto axis = axis_of(call.integer("axis", -1), indices.dims.size() + 1);
  if (!axis) return;
  const auto* const depth = call.known_ints(1);
  DimList dims = indices.dims;
  const std::int64_t classes = depth != nullptr && depth->size() == 1 && depth->front() >= 0 ? depth->front() : kUnknownDim;
  dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(*axis), classes);
  call.set(0, elem, std::move(dims));
}

// The count is known only if the input's elements are.
void non_zero(Call& call) {
  const TensorType& x = call.in(0);
  call.set(0, TensorType::of(kInt64));
  if (!x.ranked) return;
  const auto* const known = call.known_ints(0);
  const auto zeros = known == nullptr ? 0 : std::ranges::count(*known, 0);
  const auto rank = static_cast<std::int64_t>(x.dims.size());
  call.set(0, kInt64, {rank, known == nullptr ? kUnknownDim : static_cast<std::int64_t>(known->size()) - zeros});
}

}  // namespace berth::internal::plan::onnx::rules
