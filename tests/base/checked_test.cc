// SPDX-License-Identifier: Apache-2.0
#include "berth/base/checked.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <set>
#include <string>

#include "base/random.h"
#include "berth/base/units.h"
#include "support/errors.h"
#include "support/scale.h"

namespace {

using namespace berth;
using namespace berth::internal;

constexpr std::size_t kTop = SIZE_MAX;

TEST(Checked, AddsUpToTheLastSizeAndNoFurther) {
  EXPECT_EQ(try_add<std::size_t>(kTop - 1, 1), kTop);
  EXPECT_EQ(try_add<std::size_t>(kTop, 0), kTop);
  EXPECT_EQ(try_add<std::size_t>(kTop, 1), std::nullopt);
  EXPECT_EQ(try_add<std::size_t>(kTop / 2 + 1, kTop / 2 + 1), std::nullopt);
  EXPECT_EQ(try_add<std::int64_t>(INT64_MAX, 1), std::nullopt);
  EXPECT_EQ(try_add<std::int64_t>(INT64_MIN, -1), std::nullopt);
  EXPECT_EQ(try_add<std::int64_t>(INT64_MIN, INT64_MAX), -1);
}

TEST(Checked, MultipliesUpToTheLastSizeAndNoFurther) {
  EXPECT_EQ(try_multiply<std::size_t>(1ULL << 32, (1ULL << 32) - 1), 0xffffffff00000000ULL);
  EXPECT_EQ(try_multiply<std::size_t>(1ULL << 32, 1ULL << 32), std::nullopt);
  EXPECT_EQ(try_multiply<std::size_t>(kTop, 2), std::nullopt);
  EXPECT_EQ(try_multiply<std::size_t>(kTop, 0), 0U);
  EXPECT_EQ(try_multiply<std::int64_t>(INT64_MAX, 2), std::nullopt);
  EXPECT_EQ(try_multiply<std::int64_t>(INT64_MIN, -1), std::nullopt);
}

TEST(Checked, AgreesWithArithmeticInTwiceTheWidth) {
  Random random(berth::testing::seed());
  const std::uint64_t count = berth::testing::scaled(200'000, 1000);
  for (std::uint64_t i = 0; i < count; ++i) {
    // Shifted at random, so that about half of the sums and products fit.
    const std::uint64_t a = random.next() >> random.below(64);
    const std::uint64_t b = random.next() >> random.below(64);
    const auto wide_sum = static_cast<unsigned __int128>(a) + b;
    const auto wide_product = static_cast<unsigned __int128>(a) * b;
    ASSERT_EQ(try_add(a, b).has_value(), wide_sum <= UINT64_MAX) << a << " + " << b;
    ASSERT_EQ(try_multiply(a, b).has_value(), wide_product <= UINT64_MAX) << a << " * " << b;
    ASSERT_EQ(try_add(a, b).value_or(0), wide_sum <= UINT64_MAX ? static_cast<std::uint64_t>(wide_sum) : 0);
    ASSERT_EQ(try_multiply(a, b).value_or(0), wide_product <= UINT64_MAX ? static_cast<std::uint64_t>(wide_product) : 0);
  }
  berth::testing::did(std::to_string(count) + " sums and products, seed " + std::to_string(berth::testing::seed()));
}

TEST(Checked, KnowsThePowersOfTwo) {
  EXPECT_FALSE(is_power_of_two(0));
  EXPECT_FALSE(is_power_of_two(kTop));
  for (int shift = 0; shift < 64; ++shift) EXPECT_TRUE(is_power_of_two(std::size_t{1} << shift));
  for (std::size_t value = 1; value < 5000; ++value) EXPECT_EQ(is_power_of_two(value), std::popcount(value) == 1) << value;
}

// Hazard A3: the sum that wraps to 0. The oracle uses twice the width.
TEST(Checked, RefusesToAlignUpPastTheEnd) {
  for (int shift = 0; shift < 64; ++shift) {
    const std::size_t alignment = std::size_t{1} << shift;
    const auto check = [&](std::size_t k) {
      const std::size_t value = kTop - k;
      const auto wide = (static_cast<unsigned __int128>(value) + alignment - 1) / alignment * alignment;
      const auto aligned = try_align_up(value, alignment);
      if (wide > kTop) {
        ASSERT_EQ(aligned, std::nullopt) << value << " to " << alignment;
        EXPECT_ERROR((void)checked_align_up(value, alignment, "a size"), ArgumentError, ErrorCode::size_overflow);
      } else {
        ASSERT_EQ(aligned, static_cast<std::size_t>(wide)) << value << " to " << alignment;
        ASSERT_EQ(checked_align_up(value, alignment, "a size"), static_cast<std::size_t>(wide));
      }
    };
    // Every k from 0 to the alignment; for large alignments both ends.
    for (std::size_t k = 0; k <= std::min<std::size_t>(alignment, 1024); ++k) check(k);
    for (std::size_t k = alignment - std::min<std::size_t>(alignment, 64); k <= alignment; ++k) check(k);
  }
}

TEST(Checked, AlignsUpAndDownToTheNearestMultiple) {
  for (const std::size_t alignment : {1UL, 2UL, 64UL, 4096UL}) {
    for (std::size_t value = 0; value < 3 * alignment; ++value) {
      const std::size_t up = *try_align_up(value, alignment);
      EXPECT_TRUE(up % alignment == 0 && up >= value && up - value < alignment) << value << " to " << alignment;
      const std::size_t down = align_down(value, alignment);
      EXPECT_TRUE(down % alignment == 0 && down <= value && value - down < alignment) << value << " to " << alignment;
    }
  }
  EXPECT_EQ(align_down(kTop, 4096), kTop - 4095);
}

TEST(Checked, FitsComparesRangesWithoutFormingTheSum) {
  EXPECT_TRUE(fits(0, 0, 0));
  EXPECT_TRUE(fits(10, 0, 10));
  EXPECT_TRUE(fits(4, 6, 10));
  EXPECT_FALSE(fits(4, 7, 10));
  EXPECT_FALSE(fits(11, 0, 10));
  EXPECT_FALSE(fits(kTop, 2, 10));  // the sum would be 1
  EXPECT_FALSE(fits(2, kTop, 10));
  EXPECT_TRUE(fits(kTop, 0, kTop));
}

// Hazard A4: each size is fine, their sum is not.
TEST(Checked, RefusesThePartialSumThatWraps) {
  const std::array<std::size_t, 4> sizes = {kMaxBytes, kMaxBytes, 2, 5};
  std::size_t total = 0;
  std::size_t added = 0;
  EXPECT_ERROR(
      for (const std::size_t size
           : sizes) {
        total = checked_add(total, size, "the arena's bytes");
        ++added;
      },
      ArgumentError, ErrorCode::size_overflow);
  EXPECT_EQ(added, 2U);
  EXPECT_EQ(total, kTop - 1);
}

TEST(Checked, NamesTheQuantityAndTheNumbersThatOverflow) {
  try {
    (void)checked_multiply(kTop, 3, "the arena's bytes");
    FAIL();
  } catch (const ArgumentError& error) {
    EXPECT_NE(std::string(error.what()).find("the arena's bytes"), std::string::npos) << error.what();
    EXPECT_EQ(error.fact("a"), std::to_string(kTop));
    EXPECT_EQ(error.fact("b"), "3");
  }
}

// Hazard A15.
TEST(Checked, NarrowsOnlyWhatFits) {
  EXPECT_EQ(checked_narrow<std::int32_t>(std::size_t{INT32_MAX}, "a pitch"), INT32_MAX);
  EXPECT_EQ(checked_narrow<std::uint32_t>(std::size_t{UINT32_MAX}, "a count"), UINT32_MAX);
  EXPECT_EQ(checked_narrow<std::int8_t>(-128, "a code"), -128);
  EXPECT_ERROR((void)checked_narrow<std::int32_t>(std::size_t{INT32_MAX} + 1, "a pitch"), ArgumentError, ErrorCode::size_overflow);
  EXPECT_ERROR((void)checked_narrow<std::int64_t>(kTop, "an offset"), ArgumentError, ErrorCode::size_overflow);
  EXPECT_ERROR((void)checked_narrow<std::uint32_t>(std::size_t{UINT32_MAX} + 1, "a count"), ArgumentError, ErrorCode::size_overflow);
  EXPECT_ERROR((void)checked_narrow<std::size_t>(-1, "a size"), ArgumentError, ErrorCode::size_overflow);
  EXPECT_EQ(try_narrow<std::uint64_t>(std::int64_t{-1}), std::nullopt);
  EXPECT_EQ(try_narrow<std::uint8_t>(256), std::nullopt);
  EXPECT_EQ(try_narrow<std::uint8_t>(255), 255);
}

TEST(Checked, NamesANegativeNumberThatDoesNotFitAsItIs) {
  try {
    (void)checked_narrow<std::uint32_t>(std::int64_t{-7}, "a count");
    FAIL();
  } catch (const ArgumentError& error) {
    EXPECT_NE(std::string(error.what()).find("-7"), std::string::npos) << error.what();
  }
}

TEST(Checked, AScaleThatIsTooLargeIsTheLargestByteCount) {
  EXPECT_EQ(saturating_scale(1000, 1.0625), 1062U);
  EXPECT_EQ(saturating_scale(0, 1e300), 0U);
  EXPECT_EQ(saturating_scale(1, 1e300), kMaxBytes);
  EXPECT_EQ(saturating_scale(kMaxBytes, 1.01), kMaxBytes);
  EXPECT_EQ(saturating_scale(kMaxBytes, std::numeric_limits<double>::infinity()), kMaxBytes);
}

TEST(Units, AreBinary) {
  EXPECT_EQ(3_KiB, 3072U);
  EXPECT_EQ(2_MiB, 2097152U);
  EXPECT_EQ(1_GiB, 1073741824U);
  EXPECT_EQ(16777215_TiB, 16777215ULL << 40);
}

TEST(Random, GivesTheSameSequenceEverywhere) {
  Random random(1234567);  // the published sequence of SplitMix64
  for (const std::uint64_t expected : {6457827717110365317ULL, 3203168211198807973ULL, 9817491932198370423ULL})
    EXPECT_EQ(random.next(), expected);
}

TEST(Random, StaysBelowItsBoundAndReachesAllOfIt) {
  Random random(berth::testing::seed());
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(random.below(10));
  EXPECT_EQ(seen.size(), 10U);
  EXPECT_EQ(*seen.rbegin(), 9U);
  EXPECT_EQ(random.below(1), 0U);
}

}  // namespace
