// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "base/allowance.h"
#include "base/random.h"
#include "berth/berth.h"
#include "berth/plan.h"
#include "plan/best_slots.h"
#include "plan/lives.h"
#include "plan/lives_graph.h"
#include "plan/pack/exact/exact.h"
#include "plan/pack/parts.h"
#include "plan/pack/strategies.h"
#include "plan/reuse.h"
#include "support/errors.h"

// A time limit is for the whole: each step of planning looks at the clock, and what comes after packing has its time.
namespace berth {
namespace {

using namespace testing;
using namespace internal;
using namespace internal::plan;
using namespace std::chrono_literals;

Graph random_lives(std::size_t count) {
  Random random(7);
  std::vector<LifeLine> lives;
  for (std::size_t i = 0; i < count; ++i) {
    const auto begin = static_cast<std::uint32_t>(random.below(count));
    lives.push_back({begin, begin + 1 + static_cast<std::uint32_t>(random.below(count)), 1 + random.below(1'000'000)});
  }
  return lives_graph(lives);
}

// Time that the strategies after the first take, however fast the machine.
PlanOptions with_slow_strategies(std::chrono::milliseconds limit, std::vector<std::string>& told) {
  PlanOptions options{.time_limit = limit};
  options.on_strategy = [&told, limit](const PlanProgress& now) {
    told.emplace_back(now.strategy);
    if (told.size() == 2) std::this_thread::sleep_for(2 * limit + 200ms);
  };
  return options;
}

// Whether the work notices that its time is over, as it must in every step, however short.
template <class Work>
bool notices_the_end(Work work) {
  const base::Allowance over({.until = base::Allowance::Clock::now()});
  try {
    (void)work();
    return false;
  } catch (const base::OutOfTime&) {
    return true;
  }
}

TEST(TimeLimit, EveryStepNoticesTheEnd) {
  const Graph graph = random_lives(2000);
  const NodeRange nodes{0, static_cast<NodeId>(graph.nodes.size())};
  const Plan made = berth::plan(graph, {.strategy = "time_best"});
  const std::vector<Life> lives = find_lives(graph, nodes, 1);
  const ReuseResult reuse = find_reuse(graph, nodes, lives, {});
  EXPECT_TRUE(notices_the_end([&] { return graph.validate(), 0; }));
  EXPECT_TRUE(notices_the_end([&] { return find_lives(graph, nodes, 1); }));
  EXPECT_TRUE(notices_the_end([&] { return find_reuse(graph, nodes, lives, {}); }));
  EXPECT_TRUE(notices_the_end([&] { return cut_into_parts(reuse.buffers); }));
  EXPECT_TRUE(notices_the_end([&] { return verify_plan(graph, made.tables()); }));
}

TEST(TimeLimit, EveryStrategyNoticesTheEnd) {
  const Graph graph = random_lives(2000);
  const NodeRange nodes{0, static_cast<NodeId>(graph.nodes.size())};
  const ReuseResult reuse = find_reuse(graph, nodes, find_lives(graph, nodes, 1), {});
  const std::vector<CutPart> parts = cut_into_parts(reuse.buffers);
  const Patience over(Patience::Clock::now(), {});
  for (const OffsetStrategy& strategy : offset_strategies()) {
    const PackAnswer answer = strategy.pack({parts.front().part, SIZE_MAX, over});
    EXPECT_NE(answer.end, PackEnd::done) << strategy.name;
  }
}

TEST(TimeLimit, SlotsAreNotTriedWhenThereIsAPlanAndNoTime) {
  const Plan made = berth::plan(lives_graph({{0, 4, 2}, {0, 4, 2}, {0, 3, 3}, {3, 6, 2}, {3, 7, 1}, {4, 7, 3}, {4, 6, 1}, {6, 9, 3}}),
                                {.time_limit = 0s});
  ASSERT_TRUE(made.has_locations());
  if (made.outcome() == PlanOutcome::optimal) return;
  EXPECT_EQ(made.attempts().back().note, "stopped by the time limit");
}

TEST(TimeLimit, OneTooShortSaysHowLongAPlanTakes) {
  const Graph graph = random_lives(300'000);
  try {
    (void)berth::plan(graph, {.time_limit = 0s});
    GTEST_SKIP() << "this machine plans 300,000 values in a tenth of a second";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::timeout) << error.what();
    EXPECT_NE(error.why().find("one verified plan takes about"), std::string::npos) << error.what();
    EXPECT_GE(std::stol(std::string(error.fact("needed_ms"))), 100) << error.what();
  }
}

// What is best then is not what comes too late, nor what reuses nothing.
TEST(TimeLimit, TheFirstPlanIsInHandWhenLaterStrategiesTakeTooLong) {
  std::vector<std::string> told;
  const Plan made = berth::plan(random_lives(2000), with_slow_strategies(1s, told));
  ASSERT_GE(told.size(), 2U) << "the first reached the bound";
  EXPECT_EQ(made.strategy(), offset_strategies().front().name);
  EXPECT_LT(made.peak_bytes(), made.naive_bytes());
  EXPECT_EQ(made.attempts().front().strategy, told.front());
  EXPECT_EQ(made.attempts()[1].note, "stopped by the time limit");
}

TEST(TimeLimit, WhatIsVerifiedFirstChangesNoPlan) {
  const Graph graph = random_lives(300);
  const Plan without = berth::plan(graph, {.strategy = "back_best"});
  const Plan within = berth::plan(graph, {.strategy = "back_best", .time_limit = 600s});
  EXPECT_EQ(without.tables(), within.tables());
}

// The strategies that a limit waits for are near linear on any shape.
TEST(TimeLimit, SweepsComeFirst) {
  const auto strategies = offset_strategies();
  const auto is_sweep = [](const OffsetStrategy& one) { return one.family == Family::sweep; };
  EXPECT_TRUE(is_sweep(strategies.front()));
  EXPECT_TRUE(std::is_partitioned(strategies.begin(), strategies.end(), is_sweep));
}

TEST(TimeLimit, TheCallersOwnWorkIsNotLimited) {
  bool told = false;
  const PlanOptions options{.time_limit = 10s, .on_strategy = [&](const PlanProgress&) {
                              told = true;
                              EXPECT_EQ(base::Allowance::current() == nullptr || !base::is_short_for(24h), true);
                            }};
  EXPECT_TRUE(berth::plan(lives_graph({{0, 3, 10}, {1, 4, 10}}), options).has_locations());
  EXPECT_TRUE(told);
}

TEST(TimeLimit, WithoutOneTheWorkIsCounted) {
  EXPECT_EQ(ranges_for(0), 16);
  EXPECT_EQ(ranges_for(200'000), 16);
  EXPECT_EQ(ranges_for(1'000'000), 1);
  EXPECT_EQ(ranges_for(100'000'000), 1);
}

// Many parts share the steps that a few have each: so many that none is left for one find nothing.
TEST(TimeLimit, ManyPartsShareTheirSteps) {
  const Graph graph = random_lives(400);
  const NodeRange nodes{0, static_cast<NodeId>(graph.nodes.size())};
  const std::vector<CutPart> parts = cut_into_parts(find_reuse(graph, nodes, find_lives(graph, nodes, 1), {}).buffers);
  const Part& part = parts.front().part;
  const Patience patient({}, {});
  const auto found = [&](std::size_t sharing) {
    return !pack_exact({part, SIZE_MAX, patient, part.lower_bound_bytes, 0, SIZE_MAX, 1, sharing}, {}).packing.offsets.empty();
  };
  EXPECT_TRUE(found(1));
  EXPECT_FALSE(found(SIZE_MAX));
}

}  // namespace
}  // namespace berth
