// SPDX-License-Identifier: Apache-2.0
#include "berth/base/dtype.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>
#include <optional>

#include "base/text.h"
#include "berth/base/error.h"

namespace berth {

using namespace internal;

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

// The frameworks' names, in lower case: `parse_dtype` folds case. Names that frameworks disagree on ("byte",
// "float8_e4m3") are left out.
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
    {"f8e4m3fn", DType::f8e4m3},
    {"float8_e5m2", DType::f8e5m2},
    {"f8_e5m2", DType::f8e5m2},
    {"float16", DType::f16},
    {"half", DType::f16},
    {"bfloat16", DType::bf16},
    {"float32", DType::f32},
    {"float", DType::f32},
    {"single", DType::f32},
    {"float64", DType::f64},
    {"double", DType::f64},
    {"complex64", DType::c64},
    {"cfloat", DType::c64},
    {"complex128", DType::c128},
    {"cdouble", DType::c128},
};

// NumPy's codes count bytes, where berth's names count bits: "i8" is 8 bits, "<i8" is 8 bytes. So they need
// their byte-order prefix.
constexpr Alias kNumpyCodes[] = {
    {"b1", DType::boolean}, {"u1", DType::u8},  {"u2", DType::u16}, {"u4", DType::u32},   {"u8", DType::u64},
    {"i1", DType::i8},      {"i2", DType::i16}, {"i4", DType::i32}, {"i8", DType::i64},   {"f2", DType::f16},
    {"f4", DType::f32},     {"f8", DType::f64}, {"c8", DType::c64}, {"c16", DType::c128},
};

std::optional<DType> find(std::span<const Alias> aliases, std::string_view name) noexcept {
  const auto* const found = std::ranges::find(aliases.data(), aliases.data() + aliases.size(), name, &Alias::name);
  if (found == aliases.data() + aliases.size()) return std::nullopt;
  return found->dtype;
}

std::optional<DType> find_own(std::string_view name) noexcept {
  for (const DTypeInfo& entry : kTable) {
    if (entry.name == name) return entry.dtype;
  }
  return std::nullopt;
}

// The prefix is '<' or '=' (native order, which is little-endian wherever berth runs), or '|' for one-byte
// types.
std::optional<DType> find_numpy(std::string_view name) noexcept {
  if (name.empty() || std::string_view("<=|").find(name.front()) == std::string_view::npos) return std::nullopt;
  const auto found = find(kNumpyCodes, name.substr(1));
  return found && (name.front() != '|' || size_bytes(*found) == 1) ? found : std::nullopt;
}

std::string folded(std::string_view name) {
  std::string lower(name.substr(0, 64));
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

std::string known_names() {
  std::string names;
  for (const DTypeInfo& entry : kTable) names += text::join(names.empty() ? "" : ", ", entry.name);
  return names;
}

}  // namespace

const DTypeInfo& info(DType dtype) noexcept { return kTable[static_cast<std::size_t>(dtype)]; }
std::span<const DTypeInfo> all_dtypes() noexcept { return kTable; }

DType parse_dtype(std::string_view name) {
  const std::string lower = folded(name);
  const std::string_view plain = std::string_view(lower).substr(lower.starts_with("torch.") ? 6 : 0);
  if (const auto own = find_own(plain)) return *own;
  if (const auto alias = find(kAliases, plain)) return *alias;
  if (const auto numpy = find_numpy(name)) return *numpy;
  const bool big_endian = name.starts_with('>');
  throw ArgumentError(
      ErrorCode::unsupported_dtype,
      {text::join("dtype ", text::quoted(name)), big_endian ? "berth stores little-endian elements only" : "berth has no such element type",
       big_endian ? "swap the bytes and use the little-endian type"
                  : text::join("use one of ", known_names(), ", or read the bytes as u8")},
      {{"name", text::printable(name)}});
}

}  // namespace berth
