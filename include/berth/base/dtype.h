// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <complex>
#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "berth/base/float_types.h"
#include "berth/export.h"

// Element types. A `DType` is one byte; `info(dtype)` looks up its properties in one table. Every stored
// element takes a whole number of bytes.
namespace berth {

enum class DType : std::uint8_t {
  boolean,  // named "bool"; one byte, 0 or 1
  u8,
  u16,
  u32,
  u64,
  i8,
  i16,
  i32,
  i64,
  f8e4m3,
  f8e5m2,
  f16,
  bf16,
  f32,
  f64,
  c64,   // two f32
  c128,  // two f64
};

inline constexpr int kDTypeCount = 17;

enum class DTypeKind : std::uint8_t { boolean, unsigned_integer, signed_integer, floating, complex };

// What a dtype can hold. For integers the bounds are exact in `lowest_integer` and `highest_integer`; for
// floating and complex types (per part) `highest` is the largest finite value.
struct DTypeRange {
  double lowest;
  double highest;
  std::int64_t lowest_integer;
  std::uint64_t highest_integer;
};

struct DTypeInfo {
  DType dtype;
  std::string_view name;  // "f32"; what to_string, JSON and the command line use
  int bits;
  DTypeKind kind;
  DTypeRange range;

  constexpr std::size_t size_bytes() const noexcept { return static_cast<std::size_t>(bits) / 8; }
};

BERTH_EXPORT const DTypeInfo& info(DType dtype) noexcept;
BERTH_EXPORT std::span<const DTypeInfo> all_dtypes() noexcept;

inline std::string_view to_string(DType dtype) noexcept { return info(dtype).name; }

namespace internal {
// The logarithms of the sizes of all dtypes, three bits each. Not an array: as a local, compilers build it on the stack
// in each call, and then guard the frame; outside, it is a variable of the host, where kernels have a trap instead.
constexpr std::uint64_t pack_dtype_sizes() noexcept {
  constexpr int kSizes[kDTypeCount] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 1, 1, 2, 2, 4, 8, 8, 16};
  std::uint64_t packed = 0;
  for (int i = 0; i < kDTypeCount; ++i) packed |= static_cast<std::uint64_t>(std::countr_zero(static_cast<unsigned>(kSizes[i]))) << 3 * i;
  return packed;
}
inline constexpr std::uint64_t kDTypeSizes = pack_dtype_sizes();
}  // namespace internal

// The size of an element, and the alignment of its address.
constexpr std::size_t size_bytes(DType dtype) noexcept {
  return std::size_t{1} << (internal::kDTypeSizes >> 3 * static_cast<unsigned>(dtype) & 7);
}
constexpr std::size_t alignment_of(DType dtype) noexcept {
  return dtype == DType::c64 || dtype == DType::c128 ? size_bytes(dtype) / 2 : size_bytes(dtype);
}

// Reads berth's own names and those of the common frameworks, ignoring case: "f32", "float32", "float", "F32",
// "torch.float32"; "bf16", "bfloat16"; "f8e4m3", "float8_e4m3fn", "F8_E4M3"; "bool"; and NumPy's type codes
// with their byte-order prefix: "<f4", "|b1". Without the prefix a name is berth's own, which counts bits: "i8"
// is one byte, "<i8" is eight. Throws ArgumentError(unsupported_dtype) for any other name, and for big-endian
// codes (">f4").
BERTH_EXPORT DType parse_dtype(std::string_view name);

// The dtype of a C++ element type: dtype_of<float>() == DType::f32. Integers map by width and signedness, so
// that `long` and `long long` both work. Types without a dtype (pointers, char, long double) do not compile.
template <class T>
constexpr DType dtype_of() {
  if constexpr (std::same_as<T, bool>)
    return DType::boolean;
  else if constexpr (std::same_as<T, float>)
    return DType::f32;
  else if constexpr (std::same_as<T, double>)
    return DType::f64;
  else if constexpr (std::same_as<T, float16>)
    return DType::f16;
  else if constexpr (std::same_as<T, bfloat16>)
    return DType::bf16;
  else if constexpr (std::same_as<T, float8_e4m3>)
    return DType::f8e4m3;
  else if constexpr (std::same_as<T, float8_e5m2>)
    return DType::f8e5m2;
  else if constexpr (std::same_as<T, std::complex<float>>)
    return DType::c64;
  else if constexpr (std::same_as<T, std::complex<double>>)
    return DType::c128;
  else {
    static_assert(std::integral<T> && !std::same_as<T, char> && !std::same_as<T, wchar_t>, "no berth dtype holds this C++ type");
    if constexpr (std::signed_integral<T>)
      return sizeof(T) == 1 ? DType::i8 : sizeof(T) == 2 ? DType::i16 : sizeof(T) == 4 ? DType::i32 : DType::i64;
    else
      return sizeof(T) == 1 ? DType::u8 : sizeof(T) == 2 ? DType::u16 : sizeof(T) == 4 ? DType::u32 : DType::u64;
  }
}

}  // namespace berth
