// SPDX-License-Identifier: Apache-2.0
#include "file/safetensors/safetensors_dtypes.h"

#include <array>

namespace berth {

using namespace internal::file;

namespace {

constexpr std::array<SafetensorsDType, 22> kDTypes{{
    {"BOOL", 8, DType::boolean},
    {"F4", 4, std::nullopt},
    {"F6_E2M3", 6, std::nullopt},
    {"F6_E3M2", 6, std::nullopt},
    {"U8", 8, DType::u8},
    {"I8", 8, DType::i8},
    {"F8_E5M2", 8, DType::f8e5m2},
    {"F8_E4M3", 8, DType::f8e4m3},
    {"F8_E8M0", 8, std::nullopt},
    {"F8_E4M3FNUZ", 8, std::nullopt},
    {"F8_E5M2FNUZ", 8, std::nullopt},
    {"I16", 16, DType::i16},
    {"U16", 16, DType::u16},
    {"F16", 16, DType::f16},
    {"BF16", 16, DType::bf16},
    {"I32", 32, DType::i32},
    {"U32", 32, DType::u32},
    {"F32", 32, DType::f32},
    {"C64", 64, DType::c64},
    {"F64", 64, DType::f64},
    {"I64", 64, DType::i64},
    {"U64", 64, DType::u64},
}};

}  // namespace

std::span<const SafetensorsDType> safetensors_dtypes() noexcept { return kDTypes; }

namespace internal::file {

const SafetensorsDType* find_safetensors_dtype(std::string_view name) noexcept {
  for (const SafetensorsDType& one : kDTypes)
    if (one.name == name) return &one;
  return nullptr;
}

const SafetensorsDType* find_safetensors_dtype(DType dtype) noexcept {
  for (const SafetensorsDType& one : kDTypes)
    if (one.dtype == dtype) return &one;
  return nullptr;
}

std::optional<std::uint64_t> packed_bytes(const Shape& shape, int bits) noexcept {
  std::optional<std::uint64_t> total = static_cast<std::uint64_t>(bits);
  bool is_empty = false;
  for (const std::int64_t dim : shape) {
    is_empty = is_empty || dim == 0;
    if (total && dim != 0) total = try_multiply(*total, static_cast<std::uint64_t>(dim));
  }
  if (!total) return std::nullopt;  // the strides of a tensor without elements must be numbers too
  if (is_empty) return 0;
  return *total % 8 == 0 ? std::optional(*total / 8) : std::nullopt;
}

}  // namespace internal::file

}  // namespace berth
