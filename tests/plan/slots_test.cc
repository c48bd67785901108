// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "berth/plan/plan.h"
#include "plan/lives_graph.h"

// Plans with slots, and plans for nodes that may run concurrently.
namespace berth::testing {
namespace {

Plan slots(const Graph& graph, std::optional<int> match_range = {}, std::vector<PlanSlot> given = {}) {
  return plan(graph, {.strategy = "slots", .match_range = match_range, .slots = std::move(given), .slots_are_free = true});
}

TEST(Slots, AreHandedOnWhenTheirValueHasDied) {
  const Plan made = slots(lives_graph({{0, 1, 10}, {1, 2, 10}, {1, 2, 10}}), 1);
  EXPECT_EQ(made.tables().slots.size(), 2U);
  EXPECT_EQ(made.peak_bytes(), 20U);
  EXPECT_NE(made.location(1).slot, made.location(2).slot);
}

TEST(Slots, WithRangeZeroNothingIsShared) { EXPECT_EQ(slots(lives_graph({{0, 1, 10}, {1, 2, 10}}), 0).tables().slots.size(), 2U); }

TEST(Slots, ALargerOneWithinTheRangeIsTakenTheSmallestFirst) {
  const Plan made = slots(lives_graph({{0, 1, 30}, {0, 1, 20}, {1, 2, 10}}), 2);
  EXPECT_EQ(made.location(2).slot, made.location(1).slot);
  EXPECT_EQ(slots(lives_graph({{0, 1, 30}, {0, 1, 21}, {1, 2, 10}}), 2).tables().slots.size(), 3U) << "none is within the range";
}

TEST(Slots, ASmallerOneGrowsTheLargestFirst) {
  const Plan made = slots(lives_graph({{0, 1, 10}, {0, 1, 12}, {1, 2, 20}}), 2);
  EXPECT_EQ(made.location(2).slot, made.location(1).slot);
  EXPECT_EQ(made.peak_bytes(), 30U);
}

TEST(Slots, TheLargestOutputOfANodeIsPlacedFirst) {
  // If the small one came first, it would take the large slot.
  const Plan made = slots(lives_graph({{0, 1, 16}, {1, 2, 8}, {1, 2, 16}}), 2);
  EXPECT_EQ(made.location(2).slot, made.location(0).slot);
  EXPECT_EQ(made.peak_bytes(), 24U);
}

TEST(Slots, TheSweepKeepsTheSmallest) {
  const Graph graph = lives_graph({{0, 1, 100}, {1, 2, 10}, {2, 3, 100}, {2, 3, 30}});
  std::size_t least = SIZE_MAX;
  for (int range = 1; range <= 16; ++range) least = std::min(least, slots(graph, range).peak_bytes());
  EXPECT_EQ(slots(graph).peak_bytes(), least);
}

TEST(Slots, OfAnotherDeviceAreNotTaken) {
  Graph graph = lives_graph({{0, 1, 10}, {1, 2, 10}});
  graph.values[1].device = graph.add_device("sim:0");
  EXPECT_EQ(slots(graph).tables().slots.size(), 2U);
}

TEST(Slots, OfAnEarlierPlanAreUsedAgain) {
  const Plan forward = slots(lives_graph({{0, 2, 100}, {1, 3, 50}}));
  const Plan backward = slots(lives_graph({{0, 2, 90}, {0, 2, 40}}), {}, forward.tables().slots);
  ASSERT_EQ(backward.tables().slots.size(), 2U);
  EXPECT_EQ(backward.tables().slots, forward.tables().slots);
}

// Two branches that may run concurrently, x0 → x1 → x2 and y0 → y1 → y2; the last two find the slots of the
// first two free.
struct TwoBranches {
  Graph graph;
  ValueId x0 = graph.add_value({.name = "x0", .bytes = 64});
  ValueId y0 = graph.add_value({.name = "y0", .bytes = 64});
  ValueId x1 = graph.add_value({.name = "x1", .bytes = 8});
  ValueId y1 = graph.add_value({.name = "y1", .bytes = 8});
  ValueId y2 = graph.add_value({.name = "y2", .bytes = 64, .output = true});
  ValueId x2 = graph.add_value({.name = "x2", .bytes = 64, .output = true});

  TwoBranches() {
    graph.add_node({.outputs = {x0}});
    graph.add_node({.outputs = {y0}});
    graph.add_node({.inputs = {x0}, .outputs = {x1}});
    graph.add_node({.inputs = {y0}, .outputs = {y1}});
    graph.add_node({.inputs = {y1}, .outputs = {y2}});
    graph.add_node({.inputs = {x1}, .outputs = {x2}});
  }
};

bool has_edge(const Plan& plan, NodeId before, NodeId after) {
  for (const PlanEdge& edge : plan.tables().edges)
    if (edge == PlanEdge{before, after}) return true;
  return false;
}

TEST(Parallel, ColoursKeepBranchesApart) {
  const TwoBranches two;
  const Plan in_order = slots(two.graph, 1);
  EXPECT_EQ(in_order.location(two.y2).slot, in_order.location(two.x0).slot) << "the first that fits";
  EXPECT_TRUE(in_order.tables().edges.empty()) << "nodes run in order";
  const Plan apart = plan(two.graph, {.strategy = "slots", .match_range = 1, .parallel = 2});
  EXPECT_EQ(apart.location(two.y2).slot, apart.location(two.y0).slot);
  EXPECT_EQ(apart.location(two.x2).slot, apart.location(two.x0).slot);
  EXPECT_TRUE(apart.tables().edges.empty()) << "each branch reuses its own";
  EXPECT_EQ(apart.peak_bytes(), in_order.peak_bytes());
}

TEST(Parallel, ReuseAcrossBranchesTakesAnEdge) {
  // a dies at node 1, then c of another branch uses its slot.
  Graph graph;
  const ValueId a = graph.add_value({.name = "a", .bytes = 64});
  const ValueId b = graph.add_value({.name = "b", .bytes = 8, .output = true});
  const ValueId c = graph.add_value({.name = "c", .bytes = 64, .output = true});
  graph.add_node({.outputs = {a}});
  graph.add_node({.inputs = {a}, .outputs = {b}});
  graph.add_node({.outputs = {c}});
  EXPECT_EQ(plan(graph, {.parallel = 2}).peak_bytes(), 136U) << "no edge, and no reuse";
  const Plan made = plan(graph, {.parallel = 2, .most_edges = 4});
  EXPECT_EQ(made.peak_bytes(), 72U);
  EXPECT_TRUE(has_edge(made, 1, 2));
  EXPECT_EQ(made.tables().edges.size(), 1U) << "the reader waits for the writer already";
  graph.nodes[2].inputs = {b};
  EXPECT_EQ(plan(graph, {.parallel = 2}).peak_bytes(), 72U) << "the graph says it already";
}

}  // namespace
}  // namespace berth::testing
