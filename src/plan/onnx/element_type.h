// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "berth/base/dtype.h"

// The element types of ONNX: numbers of TensorProto.DataType.
namespace berth::internal::plan::onnx {

inline constexpr std::int64_t kFloat = 1, kUint8 = 2, kInt8 = 3, kUint16 = 4, kInt16 = 5, kInt32 = 6, kInt64 = 7, kString = 8, kBool = 9;
inline constexpr std::int64_t kFloat16 = 10, kDouble = 11, kUint32 = 12, kUint64 = 13, kComplex64 = 14, kComplex128 = 15, kBfloat16 = 16;

// Which field of a tensor holds its elements when they are not raw.
enum class TypedField : std::uint8_t { none, floats, int32s, int64s, uint64s, doubles, strings };

struct ElementType {
  std::int64_t number;
  std::size_t bits;            // 0: no fixed size
  std::optional<DType> dtype;  // where berth has it
  TypedField field;
  bool complex = false;  // two field entries per element
};

// Null for an unknown number, as of a later version of the format.
const ElementType* element_type(std::int64_t number) noexcept;

// The bytes of `count` elements; elements smaller than a byte are packed. Nothing when that is unknown or too
// large.
std::optional<std::size_t> bytes_of(std::int64_t elem, std::size_t count) noexcept;

// The product of dimensions. Nothing when it overflows, or when one is unknown (negative).
std::optional<std::size_t> count_of(std::span<const std::int64_t> dims) noexcept;

}  // namespace berth::internal::plan::onnx
