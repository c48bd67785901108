// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/random.h"
#include "plan/pack/by_step.h"
#include "plan/pack/parts.h"
#include "plan/pack/ranges.h"
#include "support/scale.h"

// What sweeps over time are made of.
namespace berth::testing {
namespace {

using namespace internal;
using namespace internal::plan;

PackBuffer of(std::size_t bytes, std::size_t alignment = 1) { return {.bytes = bytes, .begin = 0, .end = 1, .alignment = alignment}; }

TEST(Ranges, DoNotCrossTheBoundaryOfASpace) {
  Ranges ranges(4);
  EXPECT_EQ(ranges.add_space(100), 0U);
  EXPECT_EQ(ranges.add_space(100), 1U);
  EXPECT_FALSE(ranges.place(0, of(150), 1, Choice::smallest));
  const auto first = ranges.place(0, of(60), 1, Choice::smallest);
  const auto second = ranges.place(1, of(60), 1, Choice::smallest);
  ASSERT_TRUE(first && second);
  EXPECT_NE(first->space, second->space);
  EXPECT_FALSE(ranges.place(2, of(41), 1, Choice::smallest)) << "80 bytes are free, 40 in each";
  ranges.release(0);
  ranges.release(1);
  EXPECT_FALSE(ranges.place(2, of(101), 1, Choice::smallest));
  EXPECT_TRUE(ranges.place(2, of(100), 1, Choice::smallest));
  EXPECT_TRUE(ranges.place(3, of(100), 1, Choice::smallest));
}

TEST(Ranges, AreNotAllTriedWhereNoneIsAligned) {
  constexpr std::uint32_t kMany = 1000;
  Ranges ranges(kMany + 1);
  for (std::uint32_t i = 0; i < kMany; ++i) {
    ranges.add_space(33);
    ASSERT_TRUE(ranges.place(i, of(17), 1, Choice::smallest));  // leaves 16 bytes at 17
  }
  EXPECT_FALSE(ranges.place(kMany, of(16, 16), 1, Choice::smallest));
  ranges.add_space(16);  // would hold it, and comes last of its size
  const std::uint32_t large = ranges.add_space(40);
  const auto place = ranges.place(kMany, of(16, 16), 1, Choice::smallest);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->space, large);
}

TEST(ByStep, SortsDenseAndSparseListsAlike) {
  Random random(seed());
  for (const std::size_t limit : {1UL, 10UL, 1000UL, 1'000'000UL}) {
    std::vector<std::uint32_t> keys(500);
    for (std::uint32_t& key : keys) key = static_cast<std::uint32_t>(random.below(limit));
    std::vector<std::uint32_t> list(keys.size());
    std::iota(list.begin(), list.end(), 0U);
    std::reverse(list.begin(), list.end());
    const auto key = [&](std::uint32_t i) { return keys[i]; };
    std::vector<std::uint32_t> expected = list;
    std::stable_sort(expected.begin(), expected.end(), [&](std::uint32_t a, std::uint32_t b) { return keys[a] < keys[b]; });
    EXPECT_EQ(sorted_by_step(list, limit, key), expected) << limit;
  }
}

TEST(Parts, AreTheSameInALongTime) {
  Random random(seed());
  std::vector<PackBuffer> dense(300);
  for (PackBuffer& one : dense) {
    one.begin = static_cast<std::uint32_t>(random.below(200));
    one.end = one.begin + 1 + static_cast<std::uint32_t>(random.below(20));
    one.bytes = 1 + random.below(50);
  }
  std::vector<PackBuffer> sparse = dense;
  for (PackBuffer& one : sparse) {
    one.begin *= 10'000;
    one.end *= 10'000;
  }
  const std::vector<CutPart> a = cut_into_parts(dense);
  const std::vector<CutPart> b = cut_into_parts(sparse);
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].indices, b[i].indices);
    EXPECT_EQ(a[i].part.steps, b[i].part.steps);
    EXPECT_EQ(a[i].part.lower_bound_bytes, b[i].part.lower_bound_bytes);
    for (std::size_t k = 0; k < a[i].indices.size(); ++k) {
      EXPECT_EQ(a[i].part.buffers[k].begin, b[i].part.buffers[k].begin);
      EXPECT_EQ(uncut(b[i].part, b[i].part.buffers[k]).begin, sparse[b[i].indices[k]].begin);
    }
  }
}

}  // namespace
}  // namespace berth::testing
