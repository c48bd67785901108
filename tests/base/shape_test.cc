// SPDX-License-Identifier: Apache-2.0
#include "berth/base/shape.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "berth/base/checked.h"
#include "support/errors.h"
#include "support/heap_faults.h"
#include "support/scale.h"

namespace {

using namespace berth;
using namespace berth::internal;
using Values = std::vector<std::int64_t>;

constexpr std::int64_t kHuge = std::int64_t{1} << 62;

Values counting(std::size_t rank) {
  Values values(rank);
  for (std::size_t i = 0; i < rank; ++i) values[i] = static_cast<std::int64_t>(i + 1);
  return values;
}

Values values_of(const Dims& dims) { return Values(dims.begin(), dims.end()); }

TEST(Dims, HoldsEveryRankUpToTheHighest) {
  for (std::size_t rank = 0; rank <= kMaxRank; ++rank) {
    const Values values = counting(rank);
    const Dims dims{std::span<const std::int64_t>(values)};
    EXPECT_EQ(dims.rank(), rank);
    EXPECT_EQ(dims.empty(), rank == 0);
    EXPECT_EQ(values_of(dims), values);
    EXPECT_EQ(values_of(Dims(rank, 7)), Values(rank, 7));
    EXPECT_TRUE(rank == 0 || dims[rank - 1] == values.back());
  }
}

// Hazard A7.
TEST(Dims, RefusesRanksPastTheHighest) {
  for (const std::size_t rank : {kMaxRank + 1, std::size_t{1'000'000}}) {
    const Values values(rank, 1);
    EXPECT_ERROR((void)Dims(std::span(values)), ArgumentError, ErrorCode::limit_exceeded);
    EXPECT_ERROR((void)Shape(std::span(values)), ArgumentError, ErrorCode::limit_exceeded);
    EXPECT_ERROR((void)Dims(rank, 1), ArgumentError, ErrorCode::limit_exceeded);
    try {
      (void)Shape(std::span(values));
    } catch (const ArgumentError& error) {
      EXPECT_EQ(error.fact("rank"), std::to_string(rank));
      EXPECT_EQ(error.fact("limit"), "64");
    }
  }
  Strides full(kMaxRank, 1);
  EXPECT_ERROR(full.append(1), ArgumentError, ErrorCode::limit_exceeded);
  EXPECT_EQ(full, Strides(kMaxRank, 1));
}

TEST(Dims, CopiesAndMovesBetweenAllKindsOfRanks) {
  const std::size_t ranks[] = {0, 1, 6, 7, 8, 64};
  for (const std::size_t a : ranks) {
    for (const std::size_t b : ranks) {
      SCOPED_TRACE(std::to_string(a) + " = " + std::to_string(b));
      const Dims source{std::span<const std::int64_t>(counting(b))};
      Dims target(a, -1);
      target = source;
      EXPECT_EQ(values_of(target), counting(b));
      EXPECT_EQ(values_of(source), counting(b)) << "a copy leaves its source";
      Dims taken(a, -1);
      taken = std::move(target);
      EXPECT_EQ(values_of(taken), counting(b));
      EXPECT_EQ(target.rank(), 0U);  // NOLINT: what a move leaves is empty, and usable
      target = taken;
      EXPECT_EQ(target, source);
      EXPECT_EQ(Dims(std::move(taken)), source);
    }
  }
}

TEST(Dims, SurvivesAssignmentToItself) {
  for (const std::size_t rank : {3UL, 6UL, 7UL, 64UL}) {
    Dims dims{std::span<const std::int64_t>(counting(rank))};
    Dims& same = dims;
    dims = same;
    EXPECT_EQ(values_of(dims), counting(rank));
    dims = std::move(same);
    EXPECT_EQ(values_of(dims), counting(rank));
  }
}

TEST(Dims, KeepsWhatItHeldWhenTheHeapFails) {
  const Dims large{std::span<const std::int64_t>(counting(64))};
  for (const std::size_t rank : {0UL, 3UL, 6UL, 7UL, 64UL}) {
    const Dims before{std::span<const std::int64_t>(counting(rank))};
    Dims target = before;
    const std::int64_t live = berth::testing::live_news();
    {
      const berth::testing::FailNthNew fail(1);
      EXPECT_THROW(target = large, std::bad_alloc);
    }
    EXPECT_EQ(target, before);
    EXPECT_EQ(berth::testing::live_news(), live);
  }
}

TEST(Dims, KeepsWhatItHeldWhenAnInsertOrEraseFails) {
  const Shape before(std::span<const std::int64_t>(counting(7)));
  for (const bool inserting : {true, false}) {
    std::uint64_t nth = 1;
    for (bool failed = true; failed; ++nth) {
      Shape shape = before;
      {
        const berth::testing::FailNthNew fail(nth);
        try {
          inserting ? shape.insert(2, 9) : shape.erase(2);
        } catch (const std::bad_alloc&) {
        }
        failed = fail.happened();
      }
      EXPECT_EQ(shape == before, failed) << "allocation " << nth;
    }
    EXPECT_GT(nth, 2U) << "nothing was made to fail";
  }
}

TEST(Dims, InsertsAndErasesLikeAVector) {
  Random random(berth::testing::seed());
  const std::uint64_t count = berth::testing::scaled(20'000, 500);
  Strides strides;
  Values model;
  for (std::uint64_t i = 0; i < count; ++i) {
    // Mostly around rank 6, where dimensions move to the heap.
    const bool grow = model.empty() || (model.size() < kMaxRank && random.below(12) >= std::min<std::size_t>(model.size(), 11));
    const auto axis = static_cast<std::ptrdiff_t>(random.below(model.size() + (grow ? 1 : 0)));
    const auto value = static_cast<std::int64_t>(random.below(100)) - 50;
    if (grow) {
      strides.insert(static_cast<std::size_t>(axis), value);
      model.insert(model.begin() + axis, value);
    } else {
      strides.erase(static_cast<std::size_t>(axis));
      model.erase(model.begin() + axis);
    }
    ASSERT_EQ(values_of(strides), model);
  }
  berth::testing::did(std::to_string(count) + " inserts and erases, seed " + std::to_string(berth::testing::seed()));
}

TEST(Dims, PrintsItsEntries) {
  EXPECT_EQ(Dims().to_string(), "[]");
  EXPECT_EQ((Dims{2, -3, 4}).to_string(), "[2, -3, 4]");
}

// Hazard A5.
TEST(Shape, RefusesNegativeDimensionsByAxisAndValue) {
  const std::pair<Values, std::size_t> rows[] = {{{-1}, 0}, {{2, -3, 4}, 1}, {{0, 0, INT64_MIN}, 2}, {{1, 1, 1, 1, 1, 1, 1, -7}, 7}};
  for (const auto& [dims, axis] : rows) {
    EXPECT_ERROR((void)Shape(std::span<const std::int64_t>(dims)), ArgumentError, ErrorCode::invalid_shape);
    EXPECT_ERROR((void)Shape(Dims(std::span<const std::int64_t>(dims))), ArgumentError, ErrorCode::invalid_shape);
    try {
      (void)Shape(std::span<const std::int64_t>(dims));
    } catch (const ArgumentError& error) {
      EXPECT_EQ(error.fact("axis"), std::to_string(axis));
      EXPECT_EQ(error.fact("value"), std::to_string(dims[axis]));
    }
  }
  Shape shape{2, 3};
  EXPECT_ERROR(shape.set(1, -1), ArgumentError, ErrorCode::invalid_shape);
  EXPECT_ERROR(shape.insert(0, -1), ArgumentError, ErrorCode::invalid_shape);
  EXPECT_EQ(shape, (Shape{2, 3}));
}

TEST(Shape, CountsElementsAndBytes) {
  EXPECT_EQ(Shape().num_elements(), 1U) << "a scalar";
  EXPECT_EQ(Shape().size_bytes(DType::c128), 16U);
  EXPECT_EQ(Shape::none().num_elements(), 0U);
  EXPECT_EQ((Shape{2, 3, 4}).num_elements(), 24U);
  EXPECT_EQ((Shape{2, 3, 4}).size_bytes(DType::f64), 192U);
  EXPECT_EQ(Shape(Dims(64, 1)).num_elements(), 1U);
  EXPECT_EQ((Shape{INT64_MAX, 1}).num_elements(), kMaxBytes) << "the largest count there is";
}

// Hazards A1 and A2.
TEST(Shape, RefusesProductsThatDoNotFit) {
  const Values products[] = {{INT64_MAX, 2},         {1LL << 32, 1LL << 32}, {kHuge, 2},          {kHuge, 4},
                             {INT64_MAX, INT64_MAX}, Values(64, 2),          {3, kHuge, 3, kHuge}};
  for (const Values& dims : products) {
    const Shape shape{std::span<const std::int64_t>(dims)};
    EXPECT_ERROR((void)shape.num_elements(), ArgumentError, ErrorCode::size_overflow);
    EXPECT_ERROR((void)shape.size_bytes(DType::u8), ArgumentError, ErrorCode::size_overflow);
    try {
      (void)shape.num_elements();
    } catch (const ArgumentError& error) {
      EXPECT_EQ(error.fact("dims"), shape.to_string());
    }
  }
  for (const DTypeInfo& entry : all_dtypes()) {
    const auto most = static_cast<std::int64_t>(kMaxBytes / entry.size_bytes());
    EXPECT_EQ((Shape{most}).size_bytes(entry.dtype), kMaxBytes / entry.size_bytes() * entry.size_bytes()) << entry.name;
    if (entry.size_bytes() > 1) EXPECT_ERROR((void)(Shape{most + 1}).size_bytes(entry.dtype), ArgumentError, ErrorCode::size_overflow);
  }
}

// Hazard A6.
TEST(Shape, HasNoElementsAsSoonAsOneDimensionIsZeroWhateverTheOthersAre) {
  Values dims = {0, INT64_MAX, kHuge, kHuge};
  std::ranges::sort(dims);
  do {
    const Shape shape{std::span<const std::int64_t>(dims)};
    EXPECT_EQ(shape.num_elements(), 0U) << shape.to_string();
    EXPECT_EQ(shape.size_bytes(DType::c128), 0U) << shape.to_string();
    const Strides strides = Strides::contiguous(shape);
    EXPECT_TRUE(is_contiguous(shape, strides));
    ASSERT_FALSE(overlaps_itself(shape, Strides(4, 0))) << shape.to_string();
    const Reach none = reach(shape, Strides(4, INT64_MIN));
    EXPECT_TRUE(none.lowest == 0 && none.highest == 0);
  } while (std::ranges::next_permutation(dims).found);
}

TEST(Strides, ContiguousOnesAreRowMajor) {
  EXPECT_EQ(Strides::contiguous(Shape{2, 3, 4}), (Strides{12, 4, 1}));
  EXPECT_EQ(Strides::contiguous(Shape{2, 0, 4}), (Strides{4, 4, 1}));
  EXPECT_EQ(Strides::contiguous(Shape()), Strides());
  EXPECT_EQ(Strides::none(), (Strides{1}));
}

// Hazard A8.
TEST(Reach, RefusesOffsetsThatDoNotFit) {
  const std::pair<Shape, Strides> rows[] = {
      {{3}, {kHuge}},     {{3}, {-kHuge - 1}},        {{2, 2}, {INT64_MAX, 1}}, {{2, 2}, {INT64_MIN, -1}},
      {{INT64_MAX}, {2}}, {{INT64_MAX}, {INT64_MIN}}, {{3}, {INT64_MIN}}};
  for (const auto& [shape, strides] : rows) EXPECT_ERROR((void)reach(shape, strides), ArgumentError, ErrorCode::out_of_bounds);
}

TEST(Reach, GoesUpToTheLastOffsetThatFits) {
  const Reach both = reach(Shape{2, 2}, Strides{INT64_MAX, INT64_MIN});
  EXPECT_EQ(both.lowest, INT64_MIN);
  EXPECT_EQ(both.highest, INT64_MAX);
  EXPECT_EQ(reach(Shape{1, 1}, Strides{INT64_MAX, INT64_MIN}).highest, 0) << "axes of size 1 do not move";
  EXPECT_EQ(reach(Shape{INT64_MAX}, Strides{1}).highest, INT64_MAX - 1);
}

// Every offset of a layout, in row-major order of the indices.
Values offsets(const Shape& shape, const Strides& strides) {
  Values all = {0};
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    Values wider;
    for (const std::int64_t offset : all)
      for (std::int64_t i = 0; i < shape[axis]; ++i) wider.push_back(offset + i * strides[axis]);
    all = std::move(wider);
  }
  return all;
}

TEST(Layout, ReachContiguityAndOverlapAgreeWithListingEveryOffset) {
  Random random(berth::testing::seed());
  const std::uint64_t count = berth::testing::scaled(100'000, 2000);
  std::uint64_t contiguous = 0;
  std::uint64_t overlapping = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    Values dims;
    for (std::uint64_t rank = random.below(6); rank > 0; --rank)
      dims.push_back(static_cast<std::int64_t>(random.one_in(20) ? 0 : 1 + random.below(4)));
    const Shape shape{std::span<const std::int64_t>(dims)};
    Strides strides = Strides::contiguous(shape);
    const std::uint64_t spread = 1 + random.below(60);
    for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
      if (random.one_in(2)) strides.set(axis, static_cast<std::int64_t>(random.below(2 * spread + 1)) - static_cast<std::int64_t>(spread));
    }
    SCOPED_TRACE(shape.to_string() + " " + strides.to_string());
    const Values all = offsets(shape, strides);
    const std::set<std::int64_t> different(all.begin(), all.end());
    bool in_order = true;
    for (std::size_t at = 0; at < all.size(); ++at) in_order = in_order && all[at] == static_cast<std::int64_t>(at);
    const Reach found = reach(shape, strides);
    ASSERT_EQ(found.lowest, all.empty() ? 0 : *different.begin());
    ASSERT_EQ(found.highest, all.empty() ? 0 : *different.rbegin());
    ASSERT_EQ(is_contiguous(shape, strides), in_order);
    ASSERT_EQ(overlaps_itself(shape, strides), different.size() < all.size());
    contiguous += in_order ? 1 : 0;
    overlapping += different.size() < all.size() ? 1 : 0;
  }
  EXPECT_TRUE(contiguous > 0 && overlapping > 0 && contiguous + overlapping < count) << "the cases are all of one kind";
  berth::testing::did(std::to_string(count) + " layouts, " + std::to_string(contiguous) + " contiguous, " + std::to_string(overlapping) +
                      " overlapping, seed " + std::to_string(berth::testing::seed()));
}

TEST(Layout, JudgesOverlapInLayoutsTooLargeToList) {
  EXPECT_FALSE(overlaps_itself(Shape{1 << 20, 1 << 20}, Strides{1 << 20, 1}));
  EXPECT_FALSE(overlaps_itself(Shape{1 << 20, 1 << 20}, Strides{-1, -(1 << 20)})) << "a transposed, reversed view";
  EXPECT_TRUE(overlaps_itself(Shape{1 << 20, 1 << 20}, Strides{(1 << 20) - 1, 1}));
  EXPECT_TRUE(overlaps_itself(Shape{kHuge}, Strides{0})) << "a broadcast view";
  EXPECT_TRUE(overlaps_itself(Shape{1000, 8}, Strides{1, 1})) << "a sliding window";
  EXPECT_FALSE(overlaps_itself(Shape(Dims(64, 1)), Strides(64, 0)));
  EXPECT_TRUE(overlaps_itself(Shape(Dims(64, 2)), Strides(64, 1)));
}

TEST(Layout, FindsOverlapWhenTheReachOfAllAxesPasses128Bits) {
  for (std::size_t rank = 2; rank <= kMaxRank; ++rank) {
    ASSERT_TRUE(overlaps_itself(Shape(Dims(rank, INT64_MAX)), Strides(rank, INT64_MAX))) << "rank " << rank;
  }
}

}  // namespace
