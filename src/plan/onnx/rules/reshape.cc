// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "plan/onnx/rules/rules.h"

namespace berth::internal::plan::onnx::rules {

namespace {

// The entries of a node's target shape: 0 copies the input's size, -1 is inferred, and unknown ones stay
// unknown. Nothing for other negative numbers.
std::optional<DimList> target_dims(const Call& call, const std::vector<std::int64_t>& shape, std::optional<std::size_t>& rest) {
  const TensorType& x = call.in(0);
  const bool zero_copies = call.integer("allowzero", 0) == 0;
  DimList dims;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == kUnknownInt) {
      dims.push_back(kUnknownDim);
    } else if (shape[i] == -1) {
      if (rest) return std::nullopt;
      rest = i;
      dims.push_back(1);  // takes no part in the product
    } else if (shape[i] == 0 && zero_copies) {
      dims.push_back(x.ranked && i < x.dims.size() ? x.dims[i] : kUnknownDim);
    } else if (shape[i] < 0) {
      return std::nullopt;
    } else {
      dims.push_back(shape[i]);
    }
  }
  return dims;
}

std::int64_t left_over(const TensorType& x, const DimList& dims) {
  const std::int64_t all = x.ranked ? dim_product(x.dims, 0, x.dims.size()) : kUnknownDim;
  const std::int64_t taken = dim_product(dims, 0, dims.size());
  if (all == kUnknownDim || taken <= 0 || all % taken != 0) return kUnknownDim;
  return all / taken;
}

// If all but one dimension are known, the number of elements gives it, unless a known one is 0.
void complete(const TensorType& x, DimList& dims) {
  if (std::ranges::count(dims, kUnknownDim) != 1) return;
  std::int64_t& missing = *std::ranges::find(dims, kUnknownDim);
  missing = 1;
  missing = left_over(x, dims);
}

// Marks a list of axes of an output of `rank` axes. Nothing when one is out of range or occurs twice.
std::optional<std::vector<bool>> axes_in(const std::vector<std::int64_t>& axes, std::size_t rank) {
  std::vector<bool> marks(rank, false);
  for (const std::int64_t given : axes) {
    const auto axis = axis_of(given, rank);
    if (!axis || marks[*axis]) return std::nullopt;
    marks[*axis] = true;
  }
  return marks;
}

std::int64_t exact_quotient(std::int64_t a, std::int64_t b) { return a == kUnknownDim || b <= 0 || a % b != 0 ? kUnknownDim : a / b; }

}  // namespace

void reshape(Call& call) {
  const TensorType& x = call.in(0);
  call.set(0, TensorType::of(x.elem));
  const auto* shape = call.int_list("shape");
  if (shape == nullptr) shape = call.ints(1);
  if (shape == nullptr) {
    const TensorType& given = call.in(1);
    const bool counted = given.ranked && given.dims.size() == 1 && given.dims[0] >= 0 && given.dims[0] <= 64;
    if (counted) call.set(0, x.elem, DimList(static_cast<std::size_t>(given.dims[0]), kUnknownDim));
    return;
  }
  std::optional<std::size_t> rest;
  auto dims = target_dims(call, *shape, rest);
  if (!dims) return;
  if (rest)
    (*dims)[*rest] = left_over(x, *dims);
  else
    complete(x, *dims);
  const std::int64_t before = x.ranked ? dim_product(x.dims, 0, x.dims.size()) : kUnknownDim;
  const std::int64_t after = dim_product(*dims, 0, dims->size());
  if (before != after && before != kUnknownDim && after != kUnknownDim)
    call.contradict(clash_of(x, TensorType::of(x.elem, *dims), "of the same elements"));
  call.set(0, x.elem, std::move(*dims));
}

void flatten(Call& call) {
  const TensorType& x = call.in(0);
  call.set(0, x.elem, {kUnknownDim, kUnknownDim});
  const std::int64_t given = call.integer("axis", 1);
  const auto axis = given == static_cast<std::int64_t>(x.dims.size()) ? std::optional(x.dims.size()) : axis_of(given, x.dims.size());
  if (!x.ranked || !axis) return;
  call.set(0, x.elem, {dim_product(x.dims, 0, *axis), dim_product(x.dims, *axis, x.dims.size())});
}

void squeeze(Call& call) {
  const TensorType& x = call.in(0);
  call.set(0, TensorType::of(x.elem));
  const Call::Given axes = call.attribute_or_input("axes", 1);
  if (!x.ranked || (axes.given && axes.ints == nullptr)) return;
  DimList dims;
  if (!axes.given) {
    if (std::ranges::find(x.dims, kUnknownDim) != x.dims.end()) return;
    std::ranges::copy_if(x.dims, std::back_inserter(dims), [](std::int64_t dim) { return dim != 1; });
    return call.set(0, x.elem, std::move(dims));
  }
  const auto gone = axes_in(*axes.ints, x.dims.size());
  if (!gone) return;
  for (std::size_t i = 0; i < x.dims.size(); ++i) {
    if (!(*gone)[i]) dims.push_back(x.dims[i]);
    if ((*gone)[i] && x.dims[i] != 1 && x.dims[i] != kUnknownDim) return;
  }
  call.set(0, x.elem, std::move(dims));
}

void unsqueeze(Call& call) {
  const TensorType& x = call.in(0);
  call.set(0, TensorType::of(x.elem));
  const Call::Given axes = call.attribute_or_input("axes", 1);
  if (!x.ranked || axes.ints == nullptr) return;
  const std::size_t rank = x.dims.size() + axes.ints->size();
  const auto added = axes_in(*axes.ints, rank);
  if (!added) return;
  DimList dims;
  std::size_t next = 0;
  for (std::size_t i = 0; i < rank; ++i) dims.push_back((*added)[i] ? 1 : x.dims[next++]);
  call.set(0, x.elem, std::move(dims));
}

void transpose(Call& call) {
  const TensorType& x = call.in(0);
  call.set(0, TensorType::of(x.elem));
  if (!x.ranked) return;
  const auto* const order = call.int_list("perm");
  if (order == nullptr) return call.set(0, x.elem, DimList(x.dims.rbegin(), x.dims.rend()));
  if (order->size() != x.dims.size() || !axes_in(*order, x.dims.size())) return;
  DimList dims;
  for (const std::int64_t axis : *order) dims.push_back(x.dims[*axis_of(axis, x.dims.size())]);
  call.set(0, x.elem, std::move(dims));
}

void depth_to_space(Call& call) {
  const TensorType& x = call.in(0);
  const std::int64_t block = call.integer("blocksize", 0);
  call.set(0, TensorType::of(x.elem));
  if (!x.ranked || x.dims.size() != 4 || block <= 0) return;
  const std::int64_t square = dim_product(block, block);
  call.set(0, x.elem, {x.dims[0], exact_quotient(x.dims[1], square), dim_product(x.dims[2], block), dim_product(x.dims[3], block)});
}

void space_to_depth(Call& call) {
  const TensorType& x = call.in(0);
  const std::int64_t block = call.integer("blocksize", 0);
  call.set(0, TensorType::of(x.elem));
  if (!x.ranked || x.dims.size() != 4 || block <= 0) return;
  const std::int64_t square = dim_product(block, block);
  call.set(0, x.elem, {x.dims[0], dim_product(x.dims[1], square), exact_quotient(x.dims[2], block), exact_quotient(x.dims[3], block)});
}

void expand(Call& call) {
  const TensorType& x = call.in(0);
  call.set(0, TensorType::of(x.elem));
  const auto* const shape = call.ints(1);
  if (!x.ranked || shape == nullptr) return;
  DimList asked;
  for (const std::int64_t dim : *shape) asked.push_back(dim < 0 ? kUnknownDim : dim);
  if (auto dims = broadcast(x.dims, asked)) call.set(0, x.elem, std::move(*dims));
}

void tile(Call& call) {
  const TensorType& x = call.in(0);
  call.set(0, TensorType::of(x.elem));
  if (!x.ranked) return;
  DimList dims(x.dims.size(), kUnknownDim);
  const auto* const repeats = call.ints(1);
  if (repeats != nullptr && repeats->size() == dims.size()) {
    for (std::size_t i = 0; i < dims.size(); ++i) {
      if ((*repeats)[i] >= 0) dims[i] = dim_product(x.dims[i], (*repeats)[i]);
    }
  }
  call.set(0, x.elem, std::move(dims));
}

}  // namespace berth::internal::plan::onnx::rules
