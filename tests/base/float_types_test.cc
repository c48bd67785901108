// SPDX-License-Identifier: Apache-2.0
// The oracle describes each format by three numbers. It decodes by the textbook formula and encodes by
// searching the table of all finite values, so that it has no technique in common with the code under test.
#include "berth/base/float_types.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/random.h"
#include "support/scale.h"

namespace {

using namespace berth;
using namespace berth::internal;

struct Format {
  const char* name;
  int exponent_bits;
  int mantissa_bits;
  bool has_infinity;
  double largest;
  double smallest;  // smallest positive value
};

template <class T>
constexpr Format kFormat{};
template <>
constexpr Format kFormat<float16>{"float16", 5, 10, true, 65504, 0x1p-24};
template <>
constexpr Format kFormat<bfloat16>{"bfloat16", 8, 7, true, 0x1.fep127, 0x1p-133};
template <>
constexpr Format kFormat<float8_e4m3>{"float8_e4m3", 4, 3, false, 448, 0x1p-9};
template <>
constexpr Format kFormat<float8_e5m2>{"float8_e5m2", 5, 2, true, 57344, 0x1p-16};

double bits_of_double(std::uint64_t bits) { return std::bit_cast<double>(bits); }
std::uint64_t bits(double value) { return std::bit_cast<std::uint64_t>(value); }

template <class T>
struct SmallFloat : ::testing::Test {
  using Bits = decltype(T::bits);
  static constexpr Format kF = kFormat<T>;
  static constexpr unsigned kSign = 1U << (kF.exponent_bits + kF.mantissa_bits);
  static constexpr unsigned kMantissa = (1U << kF.mantissa_bits) - 1;
  static constexpr unsigned kTopExponent = (1U << kF.exponent_bits) - 1;
  static constexpr unsigned kQuiet = 1U << (kF.mantissa_bits - 1);
  static constexpr unsigned kInfinity = kTopExponent << kF.mantissa_bits;
  // The encoding of values past the largest, without the sign.
  static constexpr unsigned kBeyond = kF.has_infinity ? kInfinity : kInfinity | kMantissa;

  static bool is_nan_code(unsigned code) {
    const unsigned mantissa = code & kMantissa;
    return ((code & ~kSign) >> kF.mantissa_bits) == kTopExponent && (kF.has_infinity ? mantissa != 0 : mantissa == kMantissa);
  }

  // REQUIRES: not a NaN.
  static double slow_decode(unsigned code) {
    const int exponent = static_cast<int>((code & ~kSign) >> kF.mantissa_bits);
    const double mantissa = static_cast<double>(code & kMantissa);
    const int bias = (1 << (kF.exponent_bits - 1)) - 1;
    double value = exponent == 0 ? std::ldexp(mantissa, 1 - bias - kF.mantissa_bits)
                                 : std::ldexp(std::ldexp(1.0, kF.mantissa_bits) + mantissa, exponent - bias - kF.mantissa_bits);
    if (kF.has_infinity && exponent == static_cast<int>(kTopExponent)) value = std::numeric_limits<double>::infinity();
    return (code & kSign) != 0 ? -value : value;
  }

  // values[code], from 0 up to the largest, and what the next value after it would be.
  static const std::vector<double>& values() {
    static const std::vector<double> table = [] {
      std::vector<double> made;
      for (unsigned code = 0; code < kBeyond; ++code) made.push_back(slow_decode(code));
      made.push_back(2 * made.back() - made[made.size() - 2]);
      return made;
    }();
    return table;
  }

  // Rounds to nearest even. REQUIRES: not a NaN.
  static unsigned slow_encode(double value) {
    const unsigned sign = std::signbit(value) ? kSign : 0;
    const double magnitude = std::fabs(value);
    const std::vector<double>& table = values();
    if (magnitude >= table.back()) return sign | kBeyond;
    const auto above = static_cast<unsigned>(std::upper_bound(table.begin(), table.end(), magnitude) - table.begin());
    const unsigned below = above - 1;
    // Exact: one bit more than the format has.
    const double middle = table[below] + (table[above] - table[below]) / 2;
    const unsigned nearest = magnitude < middle ? below : magnitude > middle ? above : below % 2 == 0 ? below : above;
    return sign | std::min(nearest, kBeyond);
  }

  static void expect_encodes(double value) {
    ASSERT_EQ(static_cast<unsigned>(T(value).bits), slow_encode(value)) << std::hexfloat << value;
    ASSERT_EQ(static_cast<unsigned>(T(-value).bits), slow_encode(-value)) << std::hexfloat << -value;
  }
};

struct Names {
  template <class T>
  static std::string GetName(int) {
    return kFormat<T>.name;
  }
};
using Formats = ::testing::Types<float16, bfloat16, float8_e4m3, float8_e5m2>;
TYPED_TEST_SUITE(SmallFloat, Formats, Names);

TYPED_TEST(SmallFloat, DecodesEveryCodeByTheFormula) {
  for (unsigned code = 0; code < 2 * this->kSign; ++code) {
    const auto value = TypeParam::from_bits(static_cast<decltype(TypeParam::bits)>(code));
    if (this->is_nan_code(code)) {
      ASSERT_TRUE(std::isnan(static_cast<double>(value)) && std::isnan(static_cast<float>(value))) << code;
    } else {
      ASSERT_EQ(bits(static_cast<double>(value)), bits(this->slow_decode(code))) << code;
      ASSERT_EQ(bits(static_cast<double>(static_cast<float>(value))), bits(this->slow_decode(code))) << code;
    }
  }
}

TYPED_TEST(SmallFloat, EveryCodeSurvivesARoundTrip) {
  for (unsigned code = 0; code < 2 * this->kSign; ++code) {
    const auto value = TypeParam::from_bits(static_cast<decltype(TypeParam::bits)>(code));
    // A signalling NaN becomes quiet; float8_e4m3 has one NaN per sign, which stays the same.
    const unsigned expected = this->is_nan_code(code) && this->kF.has_infinity ? code | this->kQuiet : code;
    ASSERT_EQ(static_cast<unsigned>(TypeParam(static_cast<double>(value)).bits), expected) << code;
  }
}

TYPED_TEST(SmallFloat, RoundsToTheNearestAndTiesToEven) {
  const std::vector<double>& table = this->values();
  constexpr double kUp = std::numeric_limits<double>::infinity();
  for (std::size_t code = 0; code + 1 < table.size(); ++code) {
    const double middle = table[code] + (table[code + 1] - table[code]) / 2;
    ASSERT_NO_FATAL_FAILURE(this->expect_encodes(middle));
    ASSERT_NO_FATAL_FAILURE(this->expect_encodes(std::nextafter(middle, kUp)));
    ASSERT_NO_FATAL_FAILURE(this->expect_encodes(std::nextafter(middle, 0)));
    ASSERT_NO_FATAL_FAILURE(this->expect_encodes(std::nextafter(table[code], kUp)));
    ASSERT_NO_FATAL_FAILURE(this->expect_encodes(std::nextafter(table[code + 1], 0)));
  }
}

TYPED_TEST(SmallFloat, AgreesWithTheOracleOnRandomDoubles) {
  Random random(berth::testing::seed());
  const std::uint64_t count = berth::testing::scaled(300'000, 2000);
  for (std::uint64_t i = 0; i < count; ++i) {
    // Exponents around the format's own, half of the time with few bits set, so that ties occur.
    const std::uint64_t exponent = 1023 - 160 + random.below(320);
    const std::uint64_t fraction = random.next() >> 12 & (random.one_in(2) ? ~0ULL : ~0ULL << (52 - this->kF.mantissa_bits - 1));
    ASSERT_NO_FATAL_FAILURE(this->expect_encodes(bits_of_double(exponent << 52 | fraction)));
  }
  berth::testing::did(std::to_string(count) + " doubles, seed " + std::to_string(berth::testing::seed()));
}

TYPED_TEST(SmallFloat, KnowsItsLargestAndSmallestValues) {
  EXPECT_EQ(TypeParam::decode(TypeParam::kLargest), this->kF.largest);
  EXPECT_EQ(TypeParam::decode(1), this->kF.smallest);
  EXPECT_EQ(this->values()[this->kBeyond - 1], this->kF.largest) << "the oracle";
}

TYPED_TEST(SmallFloat, OverflowsWhereRoundingWouldPassTheLargestValue) {
  const double step = this->values().back() - this->kF.largest;
  const double threshold = this->kF.largest + step / 2;
  const unsigned largest = TypeParam::kLargest;
  // A tie past the end rounds to the even code: the largest of float8_e4m3 is even, those of the others are
  // odd.
  EXPECT_EQ(TypeParam(threshold).bits, largest % 2 == 0 ? largest : this->kBeyond);
  EXPECT_EQ(TypeParam(std::nextafter(threshold, 0)).bits, largest);
  for (const double value : {std::nextafter(threshold, 1e300), 2 * this->kF.largest, 1e300, std::numeric_limits<double>::infinity()}) {
    EXPECT_EQ(TypeParam(value).bits, this->kBeyond) << value;
    EXPECT_EQ(TypeParam(-value).bits, this->kBeyond | this->kSign) << value;
  }
}

TYPED_TEST(SmallFloat, UnderflowsToASignedZero) {
  const double half = this->kF.smallest / 2;
  EXPECT_EQ(TypeParam(std::nextafter(half, 1)).bits, 1);
  for (const double value : {half, std::nextafter(half, 0), half / 2, 1e-300, std::numeric_limits<double>::min(), 5e-324, 0.0}) {
    EXPECT_EQ(TypeParam(value).bits, 0) << value;
    EXPECT_EQ(TypeParam(-value).bits, this->kSign) << value;
  }
}

TYPED_TEST(SmallFloat, KeepsTheSignAndTheTopOfANaNsPayload) {
  Random random(berth::testing::seed());
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t sign = random.below(2);
    // Often without the quiet bit.
    const std::uint64_t payload = std::max<std::uint64_t>(1, random.next() >> (12 + random.below(52)));
    const unsigned kept = static_cast<unsigned>(payload >> (52 - this->kF.mantissa_bits));
    const unsigned expected = this->kF.has_infinity ? this->kInfinity | this->kQuiet | kept : this->kBeyond;
    const double nan = bits_of_double(sign << 63 | 0x7ffULL << 52 | payload);
    ASSERT_EQ(TypeParam::encode(nan), expected | (sign != 0 ? this->kSign : 0)) << std::hex << bits(nan);
  }
}

TYPED_TEST(SmallFloat, DecodesANaNQuietWithItsSignAndPayload) {
  for (unsigned code = 0; code < 2 * this->kSign; ++code) {
    if (!this->is_nan_code(code)) continue;
    const std::uint64_t decoded = bits(TypeParam::decode(static_cast<decltype(TypeParam::bits)>(code)));
    const std::uint64_t payload =
        this->kF.has_infinity ? static_cast<std::uint64_t>(code & this->kMantissa) << (52 - this->kF.mantissa_bits) : 0;
    ASSERT_EQ(decoded, (code & this->kSign ? 1ULL << 63 : 0) | 0x7ffULL << 52 | 1ULL << 51 | payload) << code;
  }
}

TYPED_TEST(SmallFloat, ComparesBitsNotValues) {
  const TypeParam nan(std::numeric_limits<double>::quiet_NaN());
  EXPECT_TRUE(nan == nan);
  EXPECT_FALSE(TypeParam(0.0) == TypeParam(-0.0));
  EXPECT_EQ(TypeParam().bits, 0);
  static_assert(TypeParam(1.0) == TypeParam(1.0) && static_cast<double>(TypeParam(-1.5)) == -1.5);
}

}  // namespace
