// SPDX-License-Identifier: Apache-2.0
#include "copy/host/host_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "copy/random_layout.h"
#include "support/scale.h"

// The order in which a copy on the host visits its sides, as data.
namespace berth::testing {

using namespace internal::base;
using namespace internal::copy;
namespace {

using Kind = HostPlan::Kind;
using Sizes = std::vector<std::int64_t>;

void expect_axis(const HostAxis& axis, std::int64_t size, std::int64_t source_step, std::int64_t target_step) {
  EXPECT_EQ(axis.size, size);
  EXPECT_EQ(axis.source_step, source_step);
  EXPECT_EQ(axis.target_step, target_step);
}

TEST(HostPlan, ADenseCopyIsOneRow) {
  for (const HostPlan& plan :
       {plan_on_host(Sizes{2, 3, 4}, Sizes{12, 4, 1}, Sizes{12, 4, 1}), plan_on_host(Sizes{24}, Sizes{1}, Sizes{1})}) {
    EXPECT_EQ(plan.kind, Kind::rows);
    EXPECT_TRUE(plan.is_dense());
    EXPECT_EQ(plan.planes, 1);
    EXPECT_EQ(plan.rank, 0U);
    expect_axis(plan.row, 24, 1, 1);
  }
}

TEST(HostPlan, TheOrderOfTheAxesIsThatOfTheTarget) {
  // Both are walked column by column: still one row.
  const HostPlan same = plan_on_host(Sizes{4, 3, 2}, Sizes{1, 4, 12}, Sizes{1, 4, 12});
  expect_axis(same.row, 24, 1, 1);
  EXPECT_EQ(same.rank, 0U);
}

TEST(HostPlan, AxesOfSizeOneVanishWhateverTheirSteps) {
  const HostPlan plan = plan_on_host(Sizes{1, 5, 1, 1}, Sizes{99, 1, -7, 0}, Sizes{0, 1, 123, -5});
  expect_axis(plan.row, 5, 1, 1);
  EXPECT_EQ(plan.rank, 0U);
  EXPECT_EQ(plan.source_offset, 0);
  EXPECT_EQ(plan.target_offset, 0);
  const HostPlan scalar = plan_on_host(Sizes{}, Sizes{}, Sizes{});
  expect_axis(scalar.row, 1, 1, 1);
  EXPECT_EQ(scalar.planes, 1);
}

TEST(HostPlan, OnlyAxesThatBothSidesWalkAsOneAreMerged) {
  const HostPlan source_gap = plan_on_host(Sizes{2, 3, 4}, Sizes{24, 4, 1}, Sizes{12, 4, 1});
  expect_axis(source_gap.row, 12, 1, 1);
  ASSERT_EQ(source_gap.rank, 1U);
  expect_axis(source_gap.outer()[0], 2, 24, 12);
  const HostPlan target_gap = plan_on_host(Sizes{2, 3, 4}, Sizes{12, 4, 1}, Sizes{20, 5, 1});
  expect_axis(target_gap.row, 4, 1, 1);
  ASSERT_EQ(target_gap.rank, 2U);
  EXPECT_EQ(target_gap.planes, 6);
  const HostPlan strided = plan_on_host(Sizes{3, 4}, Sizes{8, 2}, Sizes{12, 3});
  expect_axis(strided.row, 12, 2, 3);
}

TEST(HostPlan, ATargetIsNeverWalkedBackwards) {
  const HostPlan both = plan_on_host(Sizes{10}, Sizes{-1}, Sizes{-1});
  expect_axis(both.row, 10, 1, 1);
  EXPECT_EQ(both.source_offset, -9);
  EXPECT_EQ(both.target_offset, -9);
  const HostPlan one = plan_on_host(Sizes{3, 10}, Sizes{10, 1}, Sizes{-10, -1});
  expect_axis(one.row, 30, -1, 1);
  EXPECT_EQ(one.source_offset, 29);
  EXPECT_EQ(one.target_offset, -29);
  const HostPlan source = plan_on_host(Sizes{10}, Sizes{-1}, Sizes{1});
  expect_axis(source.row, 10, -1, 1);
  EXPECT_EQ(source.source_offset, 0);
}

TEST(HostPlan, ATransposeIsDoneInTiles) {
  const HostPlan plan = plan_on_host(Sizes{30, 20}, Sizes{1, 30}, Sizes{20, 1});
  EXPECT_EQ(plan.kind, Kind::tiles);
  expect_axis(plan.row, 20, 30, 1);
  expect_axis(plan.column, 30, 1, 20);
  EXPECT_EQ(plan.planes, 1);
  // NCHW → NHWC: the two axes of an image are one.
  const HostPlan image = plan_on_host(Sizes{2, 5, 7, 3}, Sizes{105, 7, 1, 35}, Sizes{105, 21, 3, 1});
  EXPECT_EQ(image.kind, Kind::tiles);
  expect_axis(image.row, 3, 35, 1);
  expect_axis(image.column, 35, 1, 3);
  EXPECT_EQ(image.planes, 2);
}

TEST(HostPlan, TilesAreForSourcesThatAreDenserElsewhereOnly) {
  EXPECT_EQ(plan_on_host(Sizes{4, 5}, Sizes{100, 3}, Sizes{10, 2}).kind, Kind::rows) << "the same order, with gaps";
  EXPECT_EQ(plan_on_host(Sizes{4, 5}, Sizes{0, 1}, Sizes{5, 1}).kind, Kind::rows) << "a repeated row";
  EXPECT_EQ(plan_on_host(Sizes{4, 5}, Sizes{1, 0}, Sizes{5, 1}).kind, Kind::rows)
      << "repeated elements: a step of 0 is the best to have inside";
  EXPECT_EQ(plan_on_host(Sizes{4, 5}, Sizes{-1, 4}, Sizes{5, 1}).kind, Kind::tiles) << "backwards, but dense";
  EXPECT_EQ(plan_on_host(Sizes{4, 5}, Sizes{0, 0}, Sizes{5, 1}).kind, Kind::rows) << "one element everywhere";
}

TEST(HostPlan, AStepPastWhatCanBeCountedIsNotMerged) {
  const std::int64_t far = std::int64_t{1} << 62;
  const HostPlan plan = plan_on_host(Sizes{2, 4}, Sizes{1, far}, Sizes{4, 1});
  EXPECT_EQ(plan.row.size, 4) << "4 steps of 2^62 are more than 63 bits";
}

using Offsets = std::vector<std::pair<std::int64_t, std::int64_t>>;

// The offsets that a plan visits, plane after plane, sorted; a new walk begins every `stride` planes.
Offsets walked(const HostPlan& plan, std::int64_t stride) {
  Offsets all;
  for (std::int64_t first = 0; first < plan.planes; first += stride) {
    PlaneWalk walk(plan, first);
    for (std::int64_t i = first; i < std::min(first + stride, plan.planes); ++i, walk.next()) {
      for (std::int64_t column = 0; column < plan.column.size; ++column) {
        for (std::int64_t row = 0; row < plan.row.size; ++row)
          all.emplace_back(walk.target() + column * plan.column.target_step + row * plan.row.target_step,
                           walk.source() + column * plan.column.source_step + row * plan.row.source_step);
      }
    }
  }
  std::ranges::sort(all);
  return all;
}

TEST(HostPlan, WalksEveryPairOfElementsOnce) {
  Random random(seed());
  const std::uint64_t total = scaled(20'000, 1'000);
  for (std::uint64_t i = 0; i < total; ++i) {
    const Sizes shape = random_shape(random, 500);
    const Layout source = random_layout(random, shape, Repeats::axes);
    const Layout target = random_layout(random, shape, Repeats::never);
    Offsets expected;
    for_each_index(shape, target.strides, source.strides, [&](std::int64_t to, std::int64_t from) { expected.emplace_back(to, from); });
    std::ranges::sort(expected);
    const HostPlan plan = plan_on_host(shape, source.strides, target.strides);
    ASSERT_EQ(walked(plan, plan.planes), expected) << "plan " << i;
    ASSERT_EQ(walked(plan, 1 + static_cast<std::int64_t>(random.below(5))), expected) << "plan " << i << ", begun in the middle";
    // Invariants that the kernels rely on.
    EXPECT_GT(plan.row.target_step, 0);
    for (const HostAxis& axis : plan.outer()) EXPECT_GE(axis.target_step, plan.row.target_step);
    if (plan.kind == Kind::rows) {
      EXPECT_EQ(plan.column.size, 1);
    }
  }
  did(std::to_string(total) + " plans");
}

}  // namespace
}  // namespace berth::testing
