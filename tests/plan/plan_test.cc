// SPDX-License-Identifier: Apache-2.0
#include "berth/plan/plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "plan/lives_graph.h"
#include "support/errors.h"

// Options, outcomes and strategies.
namespace berth::testing {

using namespace internal::base;

namespace {

using namespace std::chrono_literals;

TEST(Plan, KnowsItsFigures) {
  const Plan made = plan(lives_graph({{0, 2, 10}, {1, 3, 20}, {2, 4, 10}}));
  EXPECT_EQ(made.naive_bytes(), 40U);
  EXPECT_EQ(made.lower_bound_bytes(), 30U);
  EXPECT_EQ(made.peak_bytes(), 30U);
  EXPECT_EQ(made.outcome(), PlanOutcome::optimal);
  EXPECT_EQ(made.ratio(), 1.0);
  EXPECT_EQ(made.at_peak().bytes, 30U);
  EXPECT_EQ(made.at_peak().node, 1U);
  EXPECT_EQ(made.at_peak().values, (std::vector<ValueId>{1, 0})) << "the largest first";
}

TEST(Plan, AnEmptyGraphHasAnEmptyPlan) {
  const Plan made = plan(Graph());
  EXPECT_EQ(made.peak_bytes(), 0U);
  EXPECT_EQ(made.outcome(), PlanOutcome::optimal);
  EXPECT_TRUE(made.at_peak().values.empty());
}

TEST(Plan, EveryStrategyGivesAPlanOnItsOwn) {
  Random random(7);
  std::vector<LifeLine> lives;
  for (int i = 0; i < 200; ++i) {
    const auto begin = static_cast<std::uint32_t>(random.below(100));
    lives.push_back({begin, static_cast<std::uint32_t>(begin + 1 + random.below(12)), 1 + random.below(1000)});
  }
  const Graph graph = lives_graph(lives);
  for (const PlanStrategy& strategy : plan_strategies()) {
    const Plan made = plan(graph, {.strategy = std::string(strategy.name)});
    EXPECT_TRUE(made.has_locations()) << strategy.name;
    EXPECT_LE(made.peak_bytes(), made.naive_bytes()) << strategy.name;
    if (strategy.name == "every_order") continue;  // too slow for that many
    EXPECT_LT(made.peak_bytes(), 2 * made.lower_bound_bytes()) << strategy.name;
  }
}

TEST(Plan, TheBestIsTheSmallestOfAll) {
  Random random(11);
  std::vector<LifeLine> lives;
  for (int i = 0; i < 60; ++i) {
    const auto begin = static_cast<std::uint32_t>(random.below(30));
    lives.push_back({begin, static_cast<std::uint32_t>(begin + 1 + random.below(20)), 1 + random.below(50)});
  }
  const Plan made = plan(lives_graph(lives), {.all_strategies = true});
  ASSERT_EQ(made.attempts().size(), plan_strategies().size());
  for (const PlanAttempt& one : made.attempts()) EXPECT_LE(made.peak_bytes(), one.peak_bytes.value_or(SIZE_MAX)) << one.strategy;
}

TEST(Plan, IndependentStretchesOfTimeAreSolvedApart) {
  // Two groups that no lifetime connects; the second alone determines the peak.
  const Plan made = plan(lives_graph({{0, 2, 3}, {1, 3, 4}, {3, 5, 30}, {4, 6, 40}}));
  EXPECT_EQ(made.peak_bytes(), 70U);
  EXPECT_EQ(made.outcome(), PlanOutcome::optimal);
}

TEST(Plan, ValuesKeepTheirAlignment) {
  Graph graph = lives_graph({{0, 2, 5}, {0, 2, 5}, {0, 2, 5}});
  graph.values[1].alignment = 64;
  const Plan made = plan(graph, {.alignment = 8});
  for (ValueId v = 0; v < 3; ++v) EXPECT_EQ(made.location(v).offset % (v == 1 ? 64 : 8), 0U);
  EXPECT_EQ(made.location(0).extent_bytes, 8U);
  EXPECT_EQ(made.lower_bound_bytes(), 64U + 8 + 8);
  EXPECT_LE(made.peak_bytes(), made.naive_bytes());
  graph.values[0] = {.name = "typed", .dtype = DType::f64, .shape = Shape{1}};
  EXPECT_EQ(plan(graph).location(0).alignment, 8U) << "that of the dtype";
}

TEST(Plan, FixedOffsetsAreKept) {
  Graph graph = lives_graph({{0, 2, 10}, {0, 2, 10}, {1, 3, 10}});
  graph.values[1].fixed_offset = 100;
  const Plan made = plan(graph);
  EXPECT_EQ(made.location(1).offset, 100U);
  EXPECT_EQ(made.lower_bound_bytes(), 110U);
  EXPECT_EQ(made.outcome(), PlanOutcome::optimal);
  graph.values[0].fixed_offset = 105;
  EXPECT_EQ(plan(graph).outcome(), PlanOutcome::infeasible);
  graph.values[0].fixed_offset = 3;
  EXPECT_ERROR(plan(graph, {.alignment = 8}), ArgumentError, ErrorCode::invalid_alignment);
  EXPECT_ERROR(plan(graph, {.strategy = "slots"}), ArgumentError, ErrorCode::invalid_argument);
}

// With reuse, a fixed offset would also apply to the other value; without it, both fit.
TEST(Plan, IsNotInfeasibleBecauseOfWhatIsShared) {
  Graph graph;
  const ValueId a = graph.add_value({.name = "a", .bytes = 64, .fixed_offset = 0});
  const ValueId b = graph.add_value({.name = "b", .bytes = 64, .output = true});
  const ValueId c = graph.add_value({.name = "c", .bytes = 64, .output = true, .fixed_offset = 0});
  graph.add_node({.outputs = {a}});
  graph.add_node({.inputs = {a}, .outputs = {b}, .inplace = {{}}});
  graph.add_node({.outputs = {c}});
  EXPECT_EQ(plan(graph).peak_bytes(), 128U);
}

TEST(Plan, AValueOfNoBytesMayBeFixedAnywhere) {
  Graph graph = lives_graph({{0, 2, 0}, {0, 2, 8}});
  graph.values[0].fixed_offset = 100;
  EXPECT_EQ(plan(graph).peak_bytes(), 8U);
}

TEST(Plan, FixedOffsetsAreKeptAmongVeryMany) {
  Random random(5);
  std::vector<LifeLine> lives;
  for (int i = 0; i < 60'000; ++i) {
    const auto begin = static_cast<std::uint32_t>(random.below(30'000));
    lives.push_back({begin, static_cast<std::uint32_t>(begin + 1 + random.below(30'000)), 1 + random.below(1000)});
  }
  Graph graph = lives_graph(lives);
  graph.values[0].fixed_offset = 12345;
  const Plan made = plan(std::move(graph), {.strategy = "size_first"});
  EXPECT_TRUE(made.has_locations());
  EXPECT_EQ(made.location(0).offset, 12345U);
}

TEST(Plan, WishesAreGrantedWhereTheyCostNothing) {
  Graph graph = lives_graph({{0, 1, 40}, {1, 2, 10}, {2, 3, 10}});
  graph.values[1].preferred_offset = 30;
  graph.values[2].preferred_offset = 31;
  const Plan made = plan(graph);
  EXPECT_EQ(made.location(1).offset, 30U);
  EXPECT_EQ(made.location(2).offset, 0U) << "it would end above the peak";
  EXPECT_EQ(made.peak_bytes(), 40U);
}

TEST(Plan, ACapacityMustHold) {
  const Graph graph = lives_graph({{0, 2, 10}, {1, 3, 20}, {2, 4, 10}});
  EXPECT_EQ(plan(graph, {.capacity_bytes = 30}).outcome(), PlanOutcome::optimal);
  const Plan refused = plan(graph, {.capacity_bytes = 29});
  EXPECT_EQ(refused.outcome(), PlanOutcome::infeasible);
  EXPECT_FALSE(refused.has_locations());
  EXPECT_EQ(refused.lower_bound_bytes(), 30U);
}

// A plan that was not found is not reported as infeasible.
TEST(Plan, NotFoundIsNotInfeasible) {
  Graph graph = lives_graph({{0, 2, 4}, {1, 3, 4}, {2, 4, 4}, {0, 1, 3}, {3, 4, 3}, {0, 4, 1}});
  const Plan slots = plan(graph, {.strategy = "slots", .match_range = 0, .capacity_bytes = 12});
  EXPECT_EQ(slots.outcome(), PlanOutcome::unknown);
  EXPECT_FALSE(slots.has_locations());
}

TEST(Plan, RefusesOptionsThatCannotBe) {
  const Graph graph = lives_graph({{0, 1, 1}});
  EXPECT_ERROR(plan(graph, {.strategy = "fastest"}), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_ERROR(plan(graph, {.strategy = "offsets", .match_range = 2}), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_ERROR(plan(graph, {.strategy = "slots", .match_range = -1}), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_ERROR(plan(graph, {.parallel = 0}), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_ERROR(plan(graph, {.alignment = 3}), ArgumentError, ErrorCode::invalid_alignment);
  EXPECT_ERROR(plan(graph, {.nodes = NodeRange{0, 9}}), ArgumentError, ErrorCode::out_of_bounds);
  EXPECT_ERROR(plan(graph, {.strategy = "offsets", .slots = {PlanSlot{}}, .slots_are_free = true}), ArgumentError,
               ErrorCode::invalid_argument);
  EXPECT_ERROR(plan(graph, {.time_limit = -1s}), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_ERROR(plan(std::shared_ptr<const Graph>()), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_ERROR(plan(graph).location(1), ArgumentError, ErrorCode::out_of_bounds);
}

TEST(Plan, RefusesSumsThatDoNotFit) {
  const std::size_t half = std::size_t{1} << 62;
  EXPECT_ERROR(plan(lives_graph({{0, 1, half}, {1, 2, half}})), ArgumentError, ErrorCode::size_overflow);
  Graph named = lives_graph({{0, 1, half / 2}, {1, 2, half}});
  named.values[1].name = "too much";
  try {
    plan(named);
  } catch (const ArgumentError& error) {
    EXPECT_EQ(error.fact("value"), "too much") << error.what();
  }
  Graph fixed = lives_graph({{0, 1, 8}});
  for (const std::size_t offset : {SIZE_MAX - 4, SIZE_MAX}) {
    fixed.values[0].fixed_offset = offset;
    EXPECT_ERROR(plan(fixed), ArgumentError, ErrorCode::size_overflow);
  }
}

TEST(Plan, WithoutTimeThereIsStillAPlan) {
  const Plan made = plan(lives_graph({{0, 2, 10}, {2, 4, 10}}), {.strategy = "offsets", .time_limit = 0s});
  EXPECT_TRUE(made.has_locations());
  EXPECT_EQ(made.strategy(), "no_reuse");
  EXPECT_EQ(made.peak_bytes(), 10U) << "the two stretches are apart";
  std::stop_source cancel;
  cancel.request_stop();
  EXPECT_TRUE(plan(lives_graph({{0, 3, 10}, {1, 4, 10}}), {.cancel = cancel.get_token()}).has_locations());
}

TEST(Plan, TellsOfEachBetterPlan) {
  std::vector<std::size_t> peaks;
  const Plan made = plan(lives_graph({{0, 2, 10}, {1, 3, 20}, {2, 4, 10}}), {.on_better = [&](const Plan& better) {
                           peaks.push_back(better.peak_bytes());
                           EXPECT_TRUE(better.has_locations());
                         }});
  ASSERT_GE(peaks.size(), 2U);
  EXPECT_TRUE(std::is_sorted(peaks.rbegin(), peaks.rend()));
  EXPECT_EQ(peaks.back(), made.peak_bytes());
}

TEST(Plan, TellsHowFarItIs) {
  std::vector<std::string> strategies;
  const Plan made = plan(lives_graph({{0, 2, 10}, {1, 3, 20}, {2, 4, 10}}), {.on_strategy = [&](const PlanProgress& now) {
                           EXPECT_EQ(now.done, strategies.size());
                           EXPECT_EQ(now.of, plan_strategies().size());
                           EXPECT_EQ(now.peak_bytes.value_or(0), strategies.empty() ? 40U : 30U) << "the first reaches the bound";
                           strategies.emplace_back(now.strategy);
                         }});
  ASSERT_EQ(strategies.size(), made.attempts().size());
  for (std::size_t i = 0; i < strategies.size(); ++i) EXPECT_EQ(strategies[i], made.attempts()[i].strategy);
}

TEST(Plan, TwoDevicesHaveTwoArenas) {
  Graph graph = lives_graph({{0, 2, 10}, {0, 2, 20}});
  graph.values[1].device = graph.add_device("sim:0");
  const Plan made = plan(graph);
  EXPECT_EQ(made.tables().arenas[0].bytes, 10U);
  EXPECT_EQ(made.tables().arenas[1].bytes, 20U);
  EXPECT_EQ(made.location(1).offset, 0U);
  EXPECT_EQ(plan(graph, {.capacity_bytes = 15}).outcome(), PlanOutcome::infeasible) << "each arena must hold it";
}

TEST(Plan, AHundredThousandNodesAreNoTrouble) {
  Graph graph;
  ValueId before = graph.add_value({.bytes = 64, .external = true});
  for (int i = 0; i < 100'000; ++i) {
    const ValueId next = graph.add_value({.bytes = 64 + static_cast<std::size_t>(i % 7) * 64});
    graph.add_node({.inputs = {before}, .outputs = {next}});
    before = next;
  }
  const Plan made = plan(std::move(graph));
  EXPECT_EQ(made.outcome(), PlanOutcome::optimal);
}

}  // namespace
}  // namespace berth::testing
