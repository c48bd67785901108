// SPDX-License-Identifier: Apache-2.0
#include "base/radix_sort.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "base/random.h"
#include "support/scale.h"

namespace berth::testing {

using namespace internal::base;

namespace {

struct Item {
  std::uint64_t key;
  std::uint32_t number;
  friend bool operator==(const Item&, const Item&) = default;
};

std::vector<Item> random_items(Random& random, std::size_t count, std::uint64_t keys, int shift) {
  std::vector<Item> items;
  for (std::uint32_t i = 0; i < count; ++i) items.push_back({random.below(keys) << shift, i});
  return items;
}

TEST(RadixSort, SortsAsAStableSortDoes) {
  Random random(seed());
  for (const std::size_t count : {0U, 1U, 2U, 2047U, 2048U, 2049U, 10'000U})
    for (const std::uint64_t keys :
         {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{3000}, std::uint64_t{1} << 22, std::uint64_t{1} << 40})
      for (const int shift : {0, 5, 24}) {
        std::vector<Item> items = random_items(random, count, keys, shift);
        for (Item& item : items) item.key += random.one_in(7) ? UINT64_MAX << 60 : 0;
        std::vector<Item> expected = items;
        std::ranges::stable_sort(expected, {}, &Item::key);
        radix_sort(items, [](const Item& item) { return item.key; });
        ASSERT_EQ(items, expected) << count << " items of " << keys << " keys from bit " << shift;
      }
}

TEST(RadixSort, FindsOneRepeatAmongMany) {
  Random random(seed());
  // All differ: in their upper bits, in their lower bits, or in both.
  for (const int shift : {0, 44, 20}) {
    std::vector<std::size_t> numbers(100'000);
    std::iota(numbers.begin(), numbers.end(), std::size_t{0});
    for (std::size_t& number : numbers) number <<= shift;
    for (std::size_t i = numbers.size() - 1; i > 0; --i) std::swap(numbers[i], numbers[random.below(i + 1)]);
    EXPECT_FALSE(have_repeats(numbers)) << shift;
    numbers[random.below(50'000)] = numbers[50'000 + random.below(50'000)];
    EXPECT_TRUE(have_repeats(numbers)) << shift;
  }
  EXPECT_FALSE(have_repeats({}));
  EXPECT_FALSE(have_repeats({0}));
  EXPECT_TRUE(have_repeats({0, 0}));
}

}  // namespace
}  // namespace berth::testing
