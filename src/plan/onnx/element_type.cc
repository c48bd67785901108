// SPDX-License-Identifier: Apache-2.0
#include "plan/onnx/element_type.h"

#include "berth/base/checked.h"

namespace berth::internal::plan::onnx {

namespace {

constexpr std::optional<DType> kNone = std::nullopt;

constexpr ElementType kTypes[] = {
    {kFloat, 32, DType::f32, TypedField::floats},
    {kUint8, 8, DType::u8, TypedField::int32s},
    {kInt8, 8, DType::i8, TypedField::int32s},
    {kUint16, 16, DType::u16, TypedField::int32s},
    {kInt16, 16, DType::i16, TypedField::int32s},
    {kInt32, 32, DType::i32, TypedField::int32s},
    {kInt64, 64, DType::i64, TypedField::int64s},
    {kString, 0, kNone, TypedField::strings},
    {kBool, 8, DType::boolean, TypedField::int32s},
    {kFloat16, 16, DType::f16, TypedField::int32s},
    {kDouble, 64, DType::f64, TypedField::doubles},
    {kUint32, 32, DType::u32, TypedField::uint64s},
    {kUint64, 64, DType::u64, TypedField::uint64s},
    {kComplex64, 64, DType::c64, TypedField::floats, true},
    {kComplex128, 128, DType::c128, TypedField::doubles, true},
    {kBfloat16, 16, DType::bf16, TypedField::int32s},
    {17, 8, DType::f8e4m3, TypedField::int32s},
    {18, 8, kNone, TypedField::int32s},  // f8e4m3fnuz
    {19, 8, DType::f8e5m2, TypedField::int32s},
    {20, 8, kNone, TypedField::int32s},  // f8e5m2fnuz
    {21, 4, kNone, TypedField::int32s},  // u4
    {22, 4, kNone, TypedField::int32s},  // i4
    {23, 4, kNone, TypedField::int32s},  // f4e2m1
    {24, 8, kNone, TypedField::int32s},  // f8e8m0
    {25, 2, kNone, TypedField::int32s},  // u2
    {26, 2, kNone, TypedField::int32s},  // i2
};

}  // namespace

const ElementType* element_type(std::int64_t number) noexcept {
  for (const ElementType& type : kTypes) {
    if (type.number == number) return &type;
  }
  return nullptr;
}

std::optional<std::size_t> bytes_of(std::int64_t elem, std::size_t count) noexcept {
  const ElementType* const type = element_type(elem);
  if (type == nullptr || type->bits == 0) return std::nullopt;
  if (type->bits >= 8) {
    const auto bytes = try_multiply(count, type->bits / 8);
    return bytes && *bytes <= kMaxBytes ? bytes : std::nullopt;
  }
  const std::size_t per_byte = 8 / type->bits;
  return count / per_byte + (count % per_byte != 0 ? 1 : 0);
}

std::optional<std::size_t> count_of(std::span<const std::int64_t> dims) noexcept {
  std::optional<std::size_t> count = 1;
  bool none = false;
  for (const std::int64_t dim : dims) {
    if (dim < 0) return std::nullopt;
    if (dim == 0) none = true;
    if (count && dim != 0) count = try_multiply(*count, static_cast<std::size_t>(dim));
  }
  return none ? 0 : count;
}

}  // namespace berth::internal::plan::onnx
