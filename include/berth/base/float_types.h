// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

// The floating-point types that C++20 lacks, stored as plain bits. They hold and convert values; they do no
// arithmetic. `small_float` describes a format by its bit widths; the aliases below are the formats that berth
// stores.
//
// Encoding rounds to nearest, ties to even, in one step from double. Values past the largest finite one
// overflow to infinity in the IEEE-like formats (float16, bfloat16, float8_e5m2). float8_e4m3 has no infinity:
// overflow and infinities become NaN. A NaN stays a NaN: it keeps its sign and the top bits of its payload, and
// is made quiet, as by the conversion instructions of x86-64 and ARM64.
namespace berth {

template <int ExponentBits, int MantissaBits, bool HasInfinity, class Bits>
struct small_float {
  Bits bits = 0;

  static constexpr int kBias = (1 << (ExponentBits - 1)) - 1;
  static constexpr Bits kSign = static_cast<Bits>(Bits{1} << (ExponentBits + MantissaBits));
  static constexpr Bits kMantissa = static_cast<Bits>((1u << MantissaBits) - 1);
  static constexpr Bits kExponent = static_cast<Bits>(((1u << ExponentBits) - 1) << MantissaBits);
  static constexpr Bits kLargest = static_cast<Bits>(HasInfinity ? kExponent - 1 : (kExponent | kMantissa) - 1);

  constexpr small_float() = default;
  explicit constexpr small_float(double value) noexcept : bits(encode(value)) {}

  static constexpr small_float from_bits(Bits raw) noexcept {
    small_float f;
    f.bits = raw;
    return f;
  }

  explicit constexpr operator double() const noexcept { return decode(bits); }
  explicit constexpr operator float() const noexcept { return static_cast<float>(decode(bits)); }  // exact

  // Same bits, not IEEE equality: NaN equals itself and -0 differs from 0.
  friend constexpr bool operator==(small_float, small_float) = default;

  static constexpr Bits encode(double value) noexcept {
    const auto raw = std::bit_cast<std::uint64_t>(value);
    const Bits sign = (raw >> 63) != 0 ? kSign : Bits{0};
    const std::uint64_t fraction = raw & 0xfffffffffffffULL;
    const int raw_exponent = static_cast<int>((raw >> 52) & 0x7ff);
    if (raw_exponent == 0x7ff) {
      if (!HasInfinity) return static_cast<Bits>(sign | kExponent | kMantissa);
      if (fraction == 0) return static_cast<Bits>(sign | kExponent);
      const auto payload = static_cast<Bits>(fraction >> (52 - MantissaBits));
      return static_cast<Bits>(sign | kExponent | (Bits{1} << (MantissaBits - 1)) | payload);
    }
    if (raw_exponent == 0) return sign;  // zero or a subnormal double, which rounds to zero in every format
    const int exponent = raw_exponent - 1023;
    const int smallest = 1 - kBias;
    const int shift = 52 - MantissaBits + (exponent < smallest ? smallest - exponent : 0);
    if (shift > 54) return sign;  // below half of the smallest subnormal
    const std::uint64_t significand = fraction | (1ULL << 52);
    std::uint64_t kept = significand >> shift;
    const std::uint64_t rest = significand & ((1ULL << shift) - 1);
    const std::uint64_t half = 1ULL << (shift - 1);
    if (rest > half || (rest == half && (kept & 1) != 0)) ++kept;
    // A carry out of the mantissa moves into the exponent, which is exactly what rounding up to the next binade
    // means.
    if (exponent >= smallest) kept += static_cast<std::uint64_t>(exponent - smallest) << MantissaBits;
    if (kept > kLargest) return static_cast<Bits>(sign | (HasInfinity ? kExponent : kExponent | kMantissa));
    return static_cast<Bits>(sign | kept);
  }

  static constexpr double decode(Bits raw) noexcept {
    const std::uint64_t sign = (raw & kSign) != 0 ? 1ULL << 63 : 0;
    const std::uint64_t mantissa = raw & kMantissa;
    const int exponent = static_cast<int>((raw & kExponent) >> MantissaBits);
    const bool top = (raw & kExponent) == kExponent;
    if (HasInfinity ? top : top && mantissa == kMantissa) {
      const std::uint64_t quiet = mantissa == 0 ? 0 : 1ULL << 51;
      const std::uint64_t payload = HasInfinity ? mantissa << (52 - MantissaBits) : 0;
      return std::bit_cast<double>(sign | (0x7ffULL << 52) | quiet | payload);
    }
    if (exponent == 0) {
      const double unit = std::bit_cast<double>(static_cast<std::uint64_t>(1023 + 1 - kBias - MantissaBits) << 52);
      const double magnitude = static_cast<double>(mantissa) * unit;  // exact: a few bits times a power of two
      return sign != 0 ? -magnitude : magnitude;
    }
    const auto wide = static_cast<std::uint64_t>(exponent - kBias + 1023) << 52;
    return std::bit_cast<double>(sign | wide | (mantissa << (52 - MantissaBits)));
  }
};

using float16 = small_float<5, 10, true, std::uint16_t>;
using bfloat16 = small_float<8, 7, true, std::uint16_t>;
using float8_e4m3 = small_float<4, 3, false, std::uint8_t>;  // "fn": finite values and NaN only, largest 448
using float8_e5m2 = small_float<5, 2, true, std::uint8_t>;

}  // namespace berth
