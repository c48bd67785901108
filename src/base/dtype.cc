// SPDX-License-Identifier: Apache-2.0
#include "berth/base/dtype.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>

#include "base/text.h"
#include "berth/base/error.h"

namespace berth {

namespace {

template <class T>
constexpr DTypeInfo integer(DType dtype, std::string_view name, DTypeKind kind) {
  using L = std::numeric_limits<T>;
  return {dtype,
          name,
          8 * int{sizeof(T)},
          kind,
          {static_cast<double>(L::lowest()), static_cast<double>(L::max()), static_cast<std::int64_t>(L::lowest()),
           static_cast<std::uint64_t>(L::max())}};
}

constexpr DTypeInfo floating(DType dtype, std::string_view name, int bits, DTypeKind kind, double highest) {
  return {dtype, name, bits, kind, {-highest, highest, 0, 0}};
}

template <class T>
constexpr double largest() {
  return T::decode(T::kLargest);
}

constexpr auto kUnsigned = DTypeKind::unsigned_integer;
constexpr auto kSigned = DTypeKind::signed_integer;
constexpr auto kFloating = DTypeKind::floating;
constexpr double kF32 = std::numeric_limits<float>::max();
constexpr double kF64 = std::numeric_limits<double>::max();

constexpr std::array<DTypeInfo, kDTypeCount> kTable = {{
    integer<bool>(DType::boolean, "bool", DTypeKind::boolean),
    integer<std::uint8_t>(DType::u8, "u8", kUnsigned),
    integer<std::uint16_t>(DType::u16, "u16", kUnsigned),
    integer<std::uint32_t>(DType::u32, "u32", kUnsigned),
    integer<std::uint64_t>(DType::u64, "u64", kUnsigned),
    integer<std::int8_t>(DType::i8, "i8", kSigned),
    integer<std::int16_t>(DType::i16, "i16", kSigned),
    integer<std::int32_t>(DType::i32, "i32", kSigned),
    integer<std::int64_t>(DType::i64, "i64", kSigned),
    floating(DType::f8e4m3, "f8e4m3", 8, kFloating, largest<float8_e4m3>()),
    floating(DType::f8e5m2, "f8e5m2", 8, kFloating, largest<float8_e5m2>()),
    floating(DType::f16, "f16", 16, kFloating, largest<float16>()),
    floating(DType::bf16, "bf16", 16, kFloating, largest<bfloat16>()),
    floating(DType::f32, "f32", 32, kFloating, kF32),
    floating(DType::f64, "f64", 64, kFloating, kF64),
    floating(DType::c64, "c64", 64, DTypeKind::complex, kF32),
    floating(DType::c128, "c128", 128, DTypeKind::complex, kF64),
}};

static_assert(
    [] {
      for (std::size_t i = 0; i < kTable.size(); ++i) {
        if (static_cast<std::size_t>(kTable[i].dtype) != i || kTable[i].size_bytes() != size_bytes(kTable[i].dtype)) return false;
      }
      return true;
    }(),
    "the table is in the order of the enumerators, and agrees with size_bytes");

struct Alias {
  std::string_view name;
  DType dtype;
};

// Lower case; `parse_dtype` folds. The first column of each framework's names: PyTorch and NumPy, then safetensors.
constexpr Alias kAliases[] = {
    {"boolean", DType::boolean},
    {"uint8", DType::u8},
    {"uint16", DType::u16},
    {"uint32", DType::u32},
    {"uint64", DType::u64},
    {"int8", DType::i8},
    {"int16", DType::i16},
    {"int32", DType::i32},
    {"int64", DType::i64},
    {"short", DType::i16},
    {"int", DType::i32},
    {"long", DType::i64},
    {"float8_e4m3fn", DType::f8e4m3},
    {"f8_e4m3", DType::f8e4m3},
    {"float8_e5m2", DType::f8e5m2},
    {"f8_e5m2", DType::f8e5m2},
    {"float16", DType::f16},
    {"half", DType::f16},
    {"bfloat16", DType::bf16},
    {"float32", DType::f32},
    {"float", DType::f32},
    {"float64", DType::f64},
    {"double", DType::f64},
    {"complex64", DType::c64},
    {"complex128", DType::c128},
};

std::string known_names() {
  std::string names;
  for (const DTypeInfo& entry : kTable) names += text::join(names.empty() ? "" : ", ", entry.name);
  return names;
}

}  // namespace

const DTypeInfo& info(DType dtype) noexcept { return kTable[static_cast<std::size_t>(dtype)]; }
std::span<const DTypeInfo> all_dtypes() noexcept { return kTable; }

DType parse_dtype(std::string_view name) {
  std::string folded(name.substr(0, 64));
  std::ranges::transform(folded, folded.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const DTypeInfo& entry : kTable) {
    if (entry.name == folded) return entry.dtype;
  }
  for (const Alias& alias : kAliases) {
    if (alias.name == folded) return alias.dtype;
  }
  const bool big_endian = name.starts_with('>');
  throw ArgumentError(
      ErrorCode::unsupported_dtype,
      {text::join("dtype ", text::quoted(name)), big_endian ? "berth stores little-endian elements only" : "berth has no such element type",
       big_endian ? "swap the bytes and use the little-endian type"
                  : text::join("use one of ", known_names(), ", or read the bytes as u8")},
      {{"name", text::printable(name)}});
}

}  // namespace berth
