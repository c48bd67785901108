// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// What is known of a value: its element type, its rank, some of its dimensions.
namespace berth::internal::plan::onnx {

inline constexpr std::int64_t kUnknownDim = -1;

using DimList = std::vector<std::int64_t>;  // each at least 0, or kUnknownDim

struct TensorType {
  std::int64_t elem = 0;  // 0: not known
  bool ranked = false;
  DimList dims = {};  // empty unless ranked

  static TensorType of(std::int64_t elem_type) { return {.elem = elem_type, .ranked = false, .dims = {}}; }
  static TensorType of(std::int64_t elem_type, DimList list) { return {.elem = elem_type, .ranked = true, .dims = std::move(list)}; }

  bool complete() const noexcept;  // element type, rank and all dimensions are known
  std::optional<std::size_t> bytes() const noexcept;

  friend bool operator==(const TensorType&, const TensorType&) = default;
};

// The common part of two types; unknown where they differ.
TensorType common(const TensorType& a, const TensorType& b);

// NumPy broadcasting. Nothing when the two are incompatible.
std::optional<DimList> broadcast(const DimList& a, const DimList& b);

// Normalizes a possibly negative axis. Nothing when it is outside [-rank, rank).
std::optional<std::size_t> axis_of(std::int64_t axis, std::size_t rank) noexcept;

// Arithmetic on dimensions: kUnknownDim when one is unknown, or the result is negative or overflows.
std::int64_t dim_sum(std::int64_t a, std::int64_t b) noexcept;
std::int64_t dim_product(std::int64_t a, std::int64_t b) noexcept;
// 1 for an empty range.
std::int64_t dim_product(const DimList& dims, std::size_t begin, std::size_t end) noexcept;

// "[2, ?, 4]", or "of unknown rank".
std::string to_text(const TensorType& type);
// "the shapes [2, 3] and [4, 5] cannot be broadcast": why two inputs do not go together.
std::string clash_of(const TensorType& a, const TensorType& b, std::string_view what);

}  // namespace berth::internal::plan::onnx
