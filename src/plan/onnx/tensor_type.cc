// SPDX-License-Identifier: Apache-2.0
#include "plan/onnx/tensor_type.h"

#include <algorithm>

#include "base/text.h"
#include "berth/base/checked.h"
#include "plan/onnx/element_type.h"

namespace berth::internal::plan::onnx {

namespace {

// Nothing when the two are incompatible. An unknown dimension is taken to equal the other if that is not 1, as
// it must to be valid.
std::optional<std::int64_t> broadcast_dim(std::int64_t a, std::int64_t b) {
  if (a == b || b == 1) return a;
  if (a == 1) return b;
  if (a == kUnknownDim) return b;
  if (b == kUnknownDim) return a;
  return std::nullopt;
}

}  // namespace

bool TensorType::complete() const noexcept { return elem != 0 && ranked && std::ranges::find(dims, kUnknownDim) == dims.end(); }

std::optional<std::size_t> TensorType::bytes() const noexcept {
  if (!complete()) return std::nullopt;
  const auto count = count_of(dims);
  return count ? bytes_of(elem, *count) : std::nullopt;
}

TensorType common(const TensorType& a, const TensorType& b) {
  TensorType both;
  both.elem = a.elem == b.elem ? a.elem : 0;
  if (!a.ranked || !b.ranked || a.dims.size() != b.dims.size()) return both;
  both.ranked = true;
  for (std::size_t i = 0; i < a.dims.size(); ++i) both.dims.push_back(a.dims[i] == b.dims[i] ? a.dims[i] : kUnknownDim);
  return both;
}

std::optional<DimList> broadcast(const DimList& a, const DimList& b) {
  if (a.size() < b.size()) return broadcast(b, a);
  DimList out = a;
  const std::size_t shift = a.size() - b.size();
  for (std::size_t i = 0; i < b.size(); ++i) {
    const auto dim = broadcast_dim(a[shift + i], b[i]);
    if (!dim) return std::nullopt;
    out[shift + i] = *dim;
  }
  return out;
}

std::optional<std::size_t> axis_of(std::int64_t axis, std::size_t rank) noexcept {
  const auto signed_rank = static_cast<std::int64_t>(rank);
  if (axis < -signed_rank || axis >= signed_rank) return std::nullopt;
  return static_cast<std::size_t>(axis < 0 ? axis + signed_rank : axis);
}

std::int64_t dim_sum(std::int64_t a, std::int64_t b) noexcept {
  if (a == kUnknownDim || b == kUnknownDim) return kUnknownDim;
  const auto sum = try_add(a, b);
  return sum && *sum >= 0 ? *sum : kUnknownDim;
}

std::int64_t dim_product(std::int64_t a, std::int64_t b) noexcept {
  if (a == kUnknownDim || b == kUnknownDim) return kUnknownDim;
  const auto product = try_multiply(a, b);
  return product && *product >= 0 ? *product : kUnknownDim;
}

std::int64_t dim_product(const DimList& dims, std::size_t begin, std::size_t end) noexcept {
  std::int64_t product = 1;
  for (std::size_t i = begin; i < end; ++i) product = dim_product(product, dims[i]);
  return product;
}

std::string to_text(const TensorType& type) {
  if (!type.ranked) return "of unknown rank";
  std::string out = "[";
  for (std::size_t i = 0; i < type.dims.size(); ++i)
    out += text::join(i == 0 ? "" : ", ", type.dims[i] == kUnknownDim ? std::string("?") : std::to_string(type.dims[i]));
  return out + "]";
}

std::string clash_of(const TensorType& a, const TensorType& b, std::string_view what) {
  return text::join("its inputs contradict each other: the shapes ", to_text(a), " and ", to_text(b), " cannot be ", what);
}

}  // namespace berth::internal::plan::onnx
