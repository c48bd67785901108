// SPDX-License-Identifier: Apache-2.0
#include "berth/copy/convert.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <type_traits>

#include "base/random.h"
#include "support/everything.h"
#include "support/scale.h"

// The rules of conversion, as the header states them, computed here in another way: with 80- or 128-bit floats
// and integers, and by searching the values of the small formats.
namespace berth::testing {

using namespace internal;
namespace {

using Wide = long double;

template <class To, class From>
To convert(From value) {
  To result;
  convert_element(&value, dtype_of<From>(), &result, dtype_of<To>());
  return result;
}

// The nearest value of a small format, with ties to even, from the sorted list of its values and codes.
template <class F, class Bits>
Bits nearest(Wide value) {
  static const auto kValues = [] {
    std::map<Wide, Bits> values;
    for (unsigned code = 0; code <= F::kLargest; ++code) values[F::decode(static_cast<Bits>(code))] = static_cast<Bits>(code);
    return values;
  }();
  const Bits sign = std::signbit(value) ? F::kSign : Bits{0};
  const Wide magnitude = std::fabs(value);
  auto above = kValues.lower_bound(magnitude);
  if (above == kValues.end()) {
    // Past the largest value: still that one when nearer to it than to the next value, which an unbounded
    // exponent would have.
    const auto last = std::prev(kValues.end());
    const Wide step = last->first - std::prev(last)->first;
    // A tie rounds to the even code, and the largest finite code is even only for f8e4m3.
    const bool rounds_down = magnitude - last->first < step / 2 || (magnitude - last->first == step / 2 && last->second % 2 == 0);
    if (rounds_down) return static_cast<Bits>(sign | last->second);
    return static_cast<Bits>(sign | (F::kLargest + 1));  // infinity, or f8e4m3's NaN
  }
  if (above->first == magnitude || above == kValues.begin()) return static_cast<Bits>(sign | above->second);
  const auto below = std::prev(above);
  const Wide down = magnitude - below->first;
  const Wide up = above->first - magnitude;
  const bool take_below = down < up || (down == up && below->second % 2 == 0);
  return static_cast<Bits>(sign | (take_below ? below->second : above->second));
}

template <class F, class Bits, class Source>
void expect_nearest(Source value) {
  ASSERT_EQ(convert<F>(value).bits, (nearest<F, Bits>(static_cast<Wide>(value)))) << +value;
}

std::vector<double> telling_doubles() {
  Random random(seed());
  std::vector<double> values = {
      0.0,    -0.0, 1.0,   448,    464,   480,  57344,  61440, 65504, 65519.99, 65520, 65536, 3.3895313892515355e38,
      3.4e38, 1e39, 1e300, 5e-324, 1e-45, 6e-8, 1.0 / 3};
  for (const double base : {0x1p-149, 0x1p-133, 0x1p-24, 0x1p-16, 0x1p-9, 0x1p-6, 0x1p0, 0x1p4, 0x1p8, 0x1p15}) {
    for (int i = 0; i < 64; ++i) {
      const double value = base * (1 + i / 32.0);
      values.insert(values.end(), {value, std::nextafter(value, 1e308), std::nextafter(value, 0)});
    }
  }
  for (std::uint64_t i = 0; i < scaled(200000, 1000); ++i) values.push_back(std::bit_cast<double>(random.next()));
  for (std::uint64_t i = 0; i < scaled(200000, 1000); ++i)
    values.push_back(std::ldexp(static_cast<double>(random.next()), static_cast<int>(random.below(80)) - 110));
  std::erase_if(values, [](double v) { return !std::isfinite(v); });
  return values;
}

TEST(Convert, FloatsRoundToNearestEven) {
  const std::vector<double> values = telling_doubles();
  for (const double value : values) {
    for (const double signed_value : {value, -value}) {
      expect_nearest<float16, std::uint16_t>(signed_value);
      expect_nearest<bfloat16, std::uint16_t>(signed_value);
      expect_nearest<float8_e4m3, std::uint8_t>(signed_value);
      expect_nearest<float8_e5m2, std::uint8_t>(signed_value);
      ASSERT_EQ(std::bit_cast<std::uint32_t>(convert<float>(signed_value)), std::bit_cast<std::uint32_t>(static_cast<float>(signed_value)));
      const auto narrow = static_cast<float>(signed_value);
      if (std::isfinite(narrow)) expect_nearest<bfloat16, std::uint16_t>(narrow);
    }
  }
  did(std::to_string(2 * values.size()) + " values into five formats");
}

TEST(Convert, IntegersRoundOnceIntoFloats) {
  Random random(seed());
  std::vector<std::int64_t> values = {0, 1, -1, INT64_MAX, INT64_MIN, (std::int64_t{1} << 53) + 1, (std::int64_t{1} << 24) + 1};
  // Numbers that double rounding, through a double, gets wrong: a tie in the small format plus one bit far
  // below.
  for (int shift = 54; shift < 62; ++shift)
    values.insert(values.end(), {(std::int64_t{1} << shift) + (std::int64_t{1} << (shift - 8)) + 1,
                                 (std::int64_t{1} << shift) + (std::int64_t{1} << (shift - 24)) + 1});
  for (std::uint64_t i = 0; i < scaled(300000, 1000); ++i) values.push_back(static_cast<std::int64_t>(random.next() >> random.below(64)));
  for (const std::int64_t value : values) {
    ASSERT_EQ(convert<double>(value), static_cast<double>(value));
    ASSERT_EQ(convert<float>(value), static_cast<float>(value));
    ASSERT_EQ(convert<float>(static_cast<std::uint64_t>(value)), static_cast<float>(static_cast<std::uint64_t>(value)));
    if constexpr (std::numeric_limits<Wide>::digits >= 64) {
      expect_nearest<bfloat16, std::uint16_t>(value);
      expect_nearest<float16, std::uint16_t>(value);
      expect_nearest<bfloat16, std::uint16_t>(static_cast<std::uint64_t>(value));
      expect_nearest<float8_e5m2, std::uint8_t>(value);
    }
  }
  did(std::to_string(values.size()) + " integers into five formats");
}

// The documented rule, literally: toward zero, saturating, NaN gives 0.
template <class T>
T truncated(double value) {
  if (std::isnan(value)) return 0;
  const Wide whole = std::trunc(static_cast<Wide>(value));
  if (whole < static_cast<Wide>(std::numeric_limits<T>::lowest())) return std::numeric_limits<T>::lowest();
  if (whole > static_cast<Wide>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  return static_cast<T>(whole);
}

template <class T>
void expect_truncated(double value) {
  ASSERT_EQ(convert<T>(value), truncated<T>(value)) << value;
}

TEST(Convert, FloatsTruncateAndSaturateIntoIntegers) {
  std::vector<double> values = telling_doubles();
  for (const double edge :
       {127.0, 128.0, 255.0, 256.0, 32767.0, 65535.0, 2147483647.0, 4294967295.0, 0x1p63, 0x1p64, 0x1.fffffffffffffp62}) {
    for (const double delta : {-1.5, -0.5, 0.0, 0.5, 1.0}) values.insert(values.end(), {edge + delta, -(edge + delta)});
  }
  values.insert(values.end(), {NAN, INFINITY, -INFINITY});
  for (const double value : values) {
    for (const double v : {value, -value}) {
      expect_truncated<std::int8_t>(v);
      expect_truncated<std::uint8_t>(v);
      expect_truncated<std::int16_t>(v);
      expect_truncated<std::uint16_t>(v);
      expect_truncated<std::int32_t>(v);
      expect_truncated<std::uint32_t>(v);
      expect_truncated<std::int64_t>(v);
      expect_truncated<std::uint64_t>(v);
    }
  }
  did(std::to_string(2 * values.size()) + " values into eight integer types");
}

TEST(Convert, IntegersWrapIntoNarrowerIntegers) {
  EXPECT_EQ(convert<std::uint8_t>(std::int32_t{300}), 44);
  EXPECT_EQ(convert<std::uint16_t>(std::int8_t{-1}), 65535);
  EXPECT_EQ(convert<std::int8_t>(std::uint32_t{128}), -128);
  EXPECT_EQ(convert<std::int64_t>(std::uint64_t{UINT64_MAX}), -1);
  EXPECT_EQ(convert<std::uint64_t>(std::int8_t{-2}), UINT64_MAX - 1);
}

TEST(Convert, AnythingNotZeroIsTrue) {
  EXPECT_TRUE(convert<bool>(0.1F));
  EXPECT_TRUE(convert<bool>(std::nan("")));
  EXPECT_FALSE(convert<bool>(-0.0));
  EXPECT_TRUE(convert<bool>(std::int64_t{1} << 40));
  EXPECT_TRUE(convert<bool>(std::complex<float>(0, 1)));
  EXPECT_FALSE(convert<bool>(std::complex<double>(0, -0.0)));
  EXPECT_TRUE(convert<bool>(float8_e5m2::from_bits(1)));
  const std::uint8_t odd_bool = 200;  // a bool from outside that is neither 0 nor 1
  float as_float = 0;
  convert_element(&odd_bool, DType::boolean, &as_float, DType::f32);
  EXPECT_EQ(as_float, 1.0F);
}

TEST(Convert, ComplexNumbersGiveTheirRealPart) {
  EXPECT_EQ(convert<float>(std::complex<double>(2.5, 9)), 2.5F);
  EXPECT_EQ(convert<std::int8_t>(std::complex<float>(-300, 9)), -128);
  EXPECT_EQ(convert<std::complex<float>>(bfloat16(1.5)), std::complex<float>(1.5F, 0));
  EXPECT_EQ(convert<std::complex<double>>(std::complex<float>(1, 2)), std::complex<double>(1, 2));
  EXPECT_EQ(convert<std::complex<float>>(std::complex<double>(1e300, -2)), std::complex<float>(INFINITY, -2));
}

TEST(Convert, NansStayQuietWithSignAndTopPayload) {
  // Signalling, negative, payload 0x200000.
  EXPECT_EQ(convert<float16>(std::bit_cast<float>(0xffa00000U)).bits, 0xff00);
  EXPECT_EQ(convert<bfloat16>(std::bit_cast<float>(0x7f810000U)).bits, 0x7fc1);
  EXPECT_EQ(convert<float8_e4m3>(std::bit_cast<float>(0xffc00000U)).bits, 0xff);
  EXPECT_EQ(convert<float8_e5m2>(std::bit_cast<double>(0x7ff8000000000000ULL)).bits, 0x7e);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(convert<float>(float16::from_bits(0x7c01))), 0x7fc02000U);
  EXPECT_EQ(std::bit_cast<std::uint64_t>(convert<double>(std::bit_cast<float>(0x7f800001U))), 0x7ff8000020000000ULL);
}

TEST(Convert, InfinitiesStayInfiniteWhereTheFormatHasThem) {
  EXPECT_EQ(convert<float16>(INFINITY).bits, 0x7c00);
  EXPECT_EQ(convert<bfloat16>(-INFINITY).bits, 0xff80);
  EXPECT_EQ(convert<float8_e5m2>(-INFINITY).bits, 0xfc);
  EXPECT_EQ(convert<float8_e4m3>(INFINITY).bits, 0x7f) << "f8e4m3 has NaN only";
}

TEST(Convert, TheSameDtypeCopiesTheBits) {
  EXPECT_EQ(std::bit_cast<std::uint32_t>(convert<float>(std::bit_cast<float>(0x7f800001U))), 0x7f800001U)
      << "a signalling NaN is not touched";
  const std::uint8_t odd_bool = 200;
  std::uint8_t out = 0;
  convert_element(&odd_bool, DType::boolean, &out, DType::boolean);
  EXPECT_EQ(out, 200);
}

TEST(Convert, EverySmallValueSurvivesARoundTripThroughWiderTypes) {
  for (unsigned code = 0; code < 65536; ++code) {
    const auto half = float16::from_bits(static_cast<std::uint16_t>(code));
    const auto brain = bfloat16::from_bits(static_cast<std::uint16_t>(code));
    ASSERT_TRUE(std::isnan(static_cast<float>(half)) || convert<float16>(convert<float>(half)) == half) << code;
    ASSERT_TRUE(std::isnan(static_cast<float>(brain)) || convert<bfloat16>(convert<double>(brain)) == brain) << code;
  }
  did("all 65536 codes of f16 and of bf16");
}

// Every pair of dtypes over the values at their edges, against the rules written with long double and 128-bit
// integers.
template <class To>
To by_the_rules(Wide real, Wide imaginary, bool from_integer) {
  if constexpr (std::is_same_v<To, bool>) {
    return real != 0 || imaginary != 0 || std::isnan(real);
  } else if constexpr (std::is_integral_v<To>) {
    if (from_integer) return static_cast<To>(static_cast<unsigned __int128>(static_cast<__int128>(real)));
    return truncated<To>(static_cast<double>(real));
  } else if constexpr (std::is_same_v<To, std::complex<float>>) {
    return {static_cast<float>(real), static_cast<float>(imaginary)};
  } else if constexpr (std::is_same_v<To, std::complex<double>>) {
    return {static_cast<double>(real), static_cast<double>(imaginary)};
  } else if constexpr (std::is_floating_point_v<To>) {
    return static_cast<To>(real);
  } else {
    if (std::isnan(real)) return To::from_bits(static_cast<decltype(To::bits)>(To::kExponent | To::kMantissa));
    if (std::isinf(real)) return To::from_bits(static_cast<decltype(To::bits)>((std::signbit(real) ? To::kSign : 0) | (To::kLargest + 1)));
    return To::from_bits(nearest<To, decltype(To::bits)>(real));
  }
}

template <class To>
bool same(const To& a, const To& b) {
  if constexpr (std::is_floating_point_v<To>)
    return a == b || (std::isnan(a) && std::isnan(b));
  else if constexpr (requires { a.real(); })
    return same(a.real(), b.real()) && same(a.imag(), b.imag());
  else if constexpr (requires { a.bits; })
    return a == b || (std::isnan(static_cast<double>(a)) && std::isnan(static_cast<double>(b)));
  else
    return a == b;
}

template <class From, class To>
void expect_pair(const std::vector<From>& values) {
  for (const From& value : values) {
    Wide real = 0;
    Wide imaginary = 0;
    if constexpr (requires { value.real(); }) {
      real = value.real();
      imaginary = value.imag();
    } else if constexpr (requires { value.bits; }) {
      real = static_cast<double>(value);
    } else {
      real = static_cast<Wide>(value);
    }
    if constexpr (std::is_same_v<From, To>) continue;
    const To expected = by_the_rules<To>(real, imaginary, std::is_integral_v<From>);
    ASSERT_TRUE(same(convert<To>(value), expected))
        << to_string(dtype_of<From>()) << " to " << to_string(dtype_of<To>()) << " of " << static_cast<double>(real);
  }
}

template <class From>
std::vector<From> edges() {
  if constexpr (std::is_same_v<From, bool>) {
    return {false, true};
  } else if constexpr (std::is_integral_v<From>) {
    using L = std::numeric_limits<From>;
    return {0,
            1,
            2,
            7,
            100,
            127,
            L::max(),
            L::lowest(),
            static_cast<From>(L::max() - 1),
            static_cast<From>(L::max() / 2),
            static_cast<From>(-1),
            static_cast<From>(L::max() / 3 * 2 + 1)};
  } else {
    std::vector<From> values;
    for (const double v : {0.0,
                           -0.0,
                           1.0,
                           -1.0,
                           0.5,
                           2.5,
                           -3.75,
                           127.5,
                           255.0,
                           300.0,
                           -300.0,
                           65519.0,
                           65520.0,
                           1e9,
                           -1e9,
                           1e18,
                           1e20,
                           1e39,
                           1e-8,
                           1e-40,
                           (double)NAN,
                           (double)INFINITY,
                           -(double)INFINITY}) {
      if constexpr (std::is_same_v<From, std::complex<float>>)
        values.insert(values.end(), {From(static_cast<float>(v), 2), From(0, static_cast<float>(v))});
      else if constexpr (std::is_same_v<From, std::complex<double>>)
        values.insert(values.end(), {From(v, -2), From(0, v)});
      else
        values.push_back(From(v));
    }
    return values;
  }
}

template <class... Types>
struct TypeList {};

template <class From, class... To>
void expect_from(TypeList<To...>) {
  (expect_pair<From, To>(edges<From>()), ...);
}

template <class... From>
void expect_all(TypeList<From...> all) {
  (expect_from<From>(all), ...);
}

TEST(Convert, EveryPairOfDtypesFollowsTheRulesAtItsEdges) {
  if (std::numeric_limits<Wide>::digits < 64) GTEST_SKIP() << "long double is too narrow here to hold every integer";
  expect_all(
      TypeList<bool, std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, std::int8_t, std::int16_t, std::int32_t, std::int64_t,
               float8_e4m3, float8_e5m2, float16, bfloat16, float, double, std::complex<float>, std::complex<double>>());
  did("17 x 17 pairs");
}

}  // namespace
}  // namespace berth::testing
