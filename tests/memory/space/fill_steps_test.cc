// SPDX-License-Identifier: Apache-2.0
#include "memory/space/fill_steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/random.h"
#include "berth/base/units.h"
#include "support/drawn_range.h"
#include "support/scale.h"

// Plans that are entered in a pool's tables and accounted for, without a device: the test decides how many
// steps succeed.
namespace berth::testing {

using namespace internal;
using namespace internal::memory;
namespace {

using Kind = FillStep::Kind;
class EnteredPlan : public ::testing::Test {
 protected:
  EnteredPlan() : EnteredPlan({.page_bytes = kPage, .unit_bytes = 64_KiB, .move_in_use = true, .page_bound = 1, .edge_bound = 1}) {}
  explicit EnteredPlan(const PageRules& rules) : state_(rules, budget_, decay_) {
    EXPECT_TRUE(state_.map.open({reinterpret_cast<std::byte*>(std::uintptr_t{1} << 40), 1_GiB, 256_MiB}));
    for (std::uint32_t stream = 1; stream < 4; ++stream) EXPECT_TRUE(state_.map.add_stream(stream));
  }

  Transit enter_window(std::size_t pages, std::uint32_t stream = 0) {
    EXPECT_TRUE(state_.map.reserve_nodes(1000));
    return state_.map.enter(find_window(state_.view(), PagePart::large, pages * kPage, kPageGrain, stream), kPage, 0);
  }

  FillPlan plan(const Transit& transit, std::uint32_t stream = 0, std::span<const Loan> loans = {}) {
    EXPECT_TRUE(state_.map.reserve_nodes(FillSteps::kMostNodes));
    state_.echoes.make_room(kMostSteps);
    return plan_fill(state_.view(), {.first = transit.first, .end = transit.end, .stream = stream, .loans = loans});
  }

  // Allocates a block, with a device on which every step succeeds.
  PoolExtent* allocate(std::size_t pages, std::uint32_t stream = 0) {
    const Transit transit = enter_window(pages, stream);
    const FillPlan all = plan(transit, stream);
    FillSteps steps(state_, all, {});
    EXPECT_EQ(steps.enter(transit.first), nullptr);
    steps.account({.status = {}, .done = all.count});
    return finish(transit, stream, steps.youngest_in_use(), pages);
  }

  PoolExtent* finish(const Transit& transit, std::uint32_t stream, std::uint64_t point, std::size_t pages) {
    const std::size_t begin = transit.first->begin;
    return state_.make_live(state_.map.free_cached(state_.map.coalesce(transit), stream, point), begin, pages * kPage);
  }

  void free(PoolExtent* extent, std::uint32_t stream = 0, std::uint64_t point = 0) {
    state_.accounts.take_back(extent->bytes);
    state_.map.part_of(extent->begin).free_cached(extent, stream, point);
  }

  // Live and free extents of two and three pages alternate.
  void make_gaps(std::size_t count, std::uint32_t stream = 0) {
    std::vector<PoolExtent*> blocks(2 * count);
    for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] = allocate(2 + i % 2);
    for (std::size_t i = 0; i < blocks.size(); i += 2) free(blocks[i], stream, 7);
  }

  std::string text() const {
    std::string all;
    for (const PoolExtent* e = state_.map.part(PagePart::large).front(); e != nullptr; e = e->next)
      all += std::to_string(static_cast<int>(e->state)) + ' ' + std::to_string(e->begin / kPage) + ' ' + std::to_string(e->stream) + '\n';
    return all;
  }

  std::size_t cached() const { return state_.accounts.cached() / kPage; }

  Budget budget_{Failure{ErrorCode::out_of_memory, 0, "the test's limit"}, SIZE_MAX, nullptr};
  Decay decay_{Decay::kNever, SIZE_MAX};
  PageState state_;
};

TEST_F(EnteredPlan, ARefusedClaimChangesNothing) {
  make_gaps(3);
  const std::string before = text();
  budget_.set_limit(budget_.used() + kPage);
  const Transit transit = enter_window(9);
  const FillPlan all = plan(transit);
  ASSERT_EQ(all.steps().front().kind, Kind::move);
  ASSERT_EQ(all.steps().back().kind, Kind::commit);
  FillSteps steps(state_, all, {});
  EXPECT_EQ(steps.enter(transit.first), &budget_);
  state_.map.leave(transit);
  EXPECT_EQ(text(), before);
  EXPECT_EQ(state_.audit(), "");
  EXPECT_EQ(state_.accounts.promised(), 0U);
}

TEST_F(EnteredPlan, WhatWasNotRunIsCachedAsBefore) {
  make_gaps(3);
  const Transit transit = enter_window(6);
  const FillPlan all = plan(transit);
  ASSERT_EQ(all.count, 3U);
  FillSteps steps(state_, all, {});
  ASSERT_EQ(steps.enter(transit.first), nullptr);
  EXPECT_EQ(state_.audit(), "");
  steps.account({.status = Failure{}, .done = 1});
  EXPECT_EQ(state_.audit(), "");
  state_.map.leave(transit);
  EXPECT_EQ(state_.audit(), "");
  EXPECT_EQ(cached(), 6U) << "no memory was lost";
  EXPECT_EQ(state_.accounts.figures().moves, 1U);
}

TEST_F(EnteredPlan, LostSourcesAreNotCommittedAnyMore) {
  make_gaps(3);
  const std::size_t before = budget_.used();
  const Transit transit = enter_window(6);
  const FillPlan all = plan(transit);
  ASSERT_EQ(all.count, 3U);
  FillSteps steps(state_, all, {});
  ASSERT_EQ(steps.enter(transit.first), nullptr);
  steps.account({.status = Failure{}, .done = 1, .lost = 2});
  state_.map.leave(transit);
  EXPECT_EQ(state_.audit(), "");
  EXPECT_EQ(cached(), 2U);
  EXPECT_EQ(budget_.used(), before - 4 * kPage);
}

TEST_F(EnteredPlan, MemoryInUseLeavesAnEchoUntilItsStreamIsDone) {
  make_gaps(2, 1);
  const Transit transit = enter_window(4, 1);
  const FillPlan all = plan(transit, 1);
  ASSERT_EQ(all.steps().front().kind, Kind::move_in_use);
  FillSteps steps(state_, all, {});
  ASSERT_EQ(steps.enter(transit.first), nullptr);
  EXPECT_EQ(steps.youngest_in_use(), 7U);
  steps.account({.status = {}, .done = all.count});
  finish(transit, 1, 7, 4);
  EXPECT_EQ(state_.audit(), "");
  EXPECT_EQ(state_.echoes.take_over(), nullptr) << "the stream may be at work there";
  state_.map.clean(1, 7);
  state_.echoes.clean(state_.map);
  PoolExtent* const echo = state_.echoes.take_over();
  ASSERT_NE(echo, nullptr);
  EXPECT_EQ(echo->begin, all.step[0].source.begin);
  state_.map.become_bare(echo);
  EXPECT_EQ(state_.audit(), "");
}

TEST_F(EnteredPlan, MovedEdgesAreCounted) {
  std::vector<PoolExtent*> blocks;
  for (int i = 0; i < 3; ++i) blocks.push_back(allocate(1));
  PoolExtent* const middle = blocks[1];
  free(middle);
  ASSERT_TRUE(state_.map.reserve_nodes(100));
  state_.make_live(middle, middle->begin, kPage / 2);
  FillPlan edge;
  const Transit transit = enter_window(1);
  edge.step[edge.count++] = {.kind = Kind::move_edge,
                             .source = {blocks[2]->begin - kPage / 2, blocks[2]->begin},
                             .target = {transit.first->begin, transit.first->begin + kPage / 2}};
  FillSteps steps(state_, edge, {});
  ASSERT_EQ(steps.enter(transit.first), nullptr);
  EXPECT_EQ(state_.accounts.moved_edges(), kPage / 2);
  steps.account({.status = {}, .done = 1});
  state_.map.leave(transit);
  EXPECT_EQ(state_.audit(), "");
}

TEST_F(EnteredPlan, LoansAreToldHowTheyEnded) {
  std::vector<Loan> loans(3);
  for (Loan& loan : loans) loan.bytes = kPage;
  const Transit transit = enter_window(4);
  const FillPlan all = plan(transit, 0, loans);
  ASSERT_EQ(all.count, 4U);
  FillSteps steps(state_, all, loans);
  ASSERT_EQ(steps.enter(transit.first), nullptr);
  EXPECT_EQ(budget_.used(), 4 * kPage);
  steps.account({.status = Failure{}, .done = 1, .lost = 1});
  state_.map.leave(transit);
  EXPECT_EQ(loans[0].end, Loan::End::moved);
  EXPECT_EQ(loans[1].end, Loan::End::lost);
  EXPECT_EQ(loans[2].end, Loan::End::kept);
  EXPECT_EQ(cached(), 1U);
  EXPECT_EQ(budget_.used(), kPage);
  EXPECT_EQ(state_.audit(), "");
}

// Random requests, of which some are refused and some fail at the device.
TEST_F(EnteredPlan, HoldsWhateverTheDeviceDoes) {
  Random random(seed());
  budget_.set_limit(200 * kPage);
  std::vector<std::pair<PoolExtent*, std::uint32_t>> live;
  std::uint64_t point = 0;
  std::uint64_t failures = 0;
  const std::uint64_t rounds = scaled(100'000, 1000);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    if (random.one_in(10)) {
      const auto stream = static_cast<std::uint32_t>(1 + random.below(3));
      state_.map.clean(stream, point);
      state_.echoes.clean(state_.map);
      while (PoolExtent* const echo = state_.echoes.take_over()) state_.map.become_bare(echo);
    }
    if (!live.empty() && random.one_in(2)) {
      std::swap(live[random.below(live.size())], live.back());
      free(live.back().first, live.back().second, ++point);
      live.pop_back();
      continue;
    }
    const auto stream = static_cast<std::uint32_t>(random.below(4));
    const std::size_t pages = 1 + random.below(20);
    const Transit transit = enter_window(pages, stream);
    const FillPlan all = plan(transit, stream);
    FillSteps steps(state_, all, {});
    bool filled = steps.enter(transit.first) == nullptr;
    if (filled) {
      RunResult result{.status = {}, .done = all.count};
      if (all.count > 0 && random.one_in(4)) {
        result = {.status = Failure{}, .done = random.below(all.count)};
        const FillStep& failed = all.step[result.done];
        if (failed.has_source() && failed.kind != Kind::move_in_use && random.one_in(2)) result.lost = 1;
        filled = false;
      }
      const std::uint64_t youngest = steps.youngest_in_use();
      steps.account(result);
      if (filled) live.emplace_back(finish(transit, stream, youngest, pages), stream);
    }
    if (!filled) state_.map.leave(transit);
    failures += filled ? 0 : 1;
    ASSERT_EQ(state_.audit(), "") << "round " << round;
    ASSERT_EQ(state_.accounts.promised(), 0U);
    ASSERT_EQ(state_.echoes.to_come(), 0U);
    ASSERT_EQ(budget_.used(), state_.accounts.figures().committed) << "round " << round;
  }
  EXPECT_GT(failures, 0U);
  did(std::to_string(rounds) + " rounds, " + std::to_string(failures) + " failures, seed " + std::to_string(seed()));
}

}  // namespace
}  // namespace berth::testing
