// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "plan/random_graph.h"
#include "support/errors.h"
#include "support/everything.h"
#include "support/scale.h"

// Plans that change the order of nodes.
namespace berth::testing {

using namespace internal::base;

namespace {

// Two branches, each with a large value that is reduced to a small one; the graph computes both large ones
// first.
Graph two_branches(bool side_effects = false) {
  Graph graph;
  const ValueId x = graph.add_value({.name = "x", .bytes = 8, .external = true});
  const ValueId big_a = graph.add_value({.name = "big_a", .bytes = 1000});
  const ValueId big_b = graph.add_value({.name = "big_b", .bytes = 1000});
  const ValueId a = graph.add_value({.name = "a", .bytes = 10});
  const ValueId b = graph.add_value({.name = "b", .bytes = 10});
  const ValueId y = graph.add_value({.name = "y", .bytes = 10, .output = true});
  graph.add_node({.name = "grow_a", .inputs = {x}, .outputs = {big_a}, .side_effects = side_effects});
  graph.add_node({.name = "grow_b", .inputs = {x}, .outputs = {big_b}, .side_effects = side_effects});
  graph.add_node({.name = "shrink_a", .inputs = {big_a}, .outputs = {a}, .side_effects = side_effects});
  graph.add_node({.name = "shrink_b", .inputs = {big_b}, .outputs = {b}, .side_effects = side_effects});
  graph.add_node({.name = "join", .inputs = {a, b}, .outputs = {y}});
  return graph;
}

TEST(PlanOrder, OneBranchAfterTheOtherNeedsHalf) {
  EXPECT_EQ(plan(two_branches()).peak_bytes(), 2010U);
  const Plan made = plan(two_branches(), {.order = "best"});
  EXPECT_EQ(made.peak_bytes(), 1020U);
  EXPECT_EQ(made.outcome(), PlanOutcome::optimal);
  ASSERT_EQ(made.tables().order.size(), 5U);
  EXPECT_TRUE(shadow_run(place(made)).ok());
  EXPECT_EQ(made.nodes_in_order(), made.tables().order);
  EXPECT_EQ(made.at_peak().node, made.node_at(made.at_peak().step));
  EXPECT_FALSE(made.orders().empty());
}

TEST(PlanOrder, IsKeptUnlessThePeakFalls) {
  Graph chain;
  ValueId last = chain.add_value({.bytes = 8, .external = true});
  for (int i = 0; i < 6; ++i) {
    const ValueId next = chain.add_value({.bytes = 100, .output = i == 5});
    chain.add_node({.inputs = {last}, .outputs = {next}});
    last = next;
  }
  const Plan made = plan(chain, {.order = "best"});
  EXPECT_TRUE(made.tables().order.empty());
  EXPECT_EQ(made.peak_bytes(), plan(chain).peak_bytes());
  EXPECT_EQ(made.orders().front().order, "given");
}

TEST(PlanOrder, SideEffectsStayInTheirOrder) {
  const Plan made = plan(two_branches(true), {.order = "best"});
  EXPECT_EQ(made.peak_bytes(), 2010U) << "nothing may be moved";
  EXPECT_TRUE(made.tables().order.empty());
}

TEST(PlanOrder, SomeSideEffectsLeaveTheRestFree) {
  Graph graph = two_branches();
  graph.nodes[1].side_effects = true;  // grow_b before shrink_a …
  graph.nodes[2].side_effects = true;
  const Plan made = plan(graph, {.order = "best"});
  const std::vector<NodeId> order = made.nodes_in_order();
  EXPECT_LT(std::find(order.begin(), order.end(), 1U), std::find(order.begin(), order.end(), 2U));
  EXPECT_EQ(made.peak_bytes(), 1020U) << "… but b may be finished before a is begun";
}

TEST(PlanOrder, LivesFromATableAreTimesAndAreNotMoved) {
  const Graph lives = read_lives_csv("id,lower,upper,size\na,0,1,100\nb,1,2,100\nc,0,3,50\nd,2,3,100\n");
  const Plan made = plan(lives, {.order = "best"});
  EXPECT_TRUE(made.tables().order.empty());
  EXPECT_EQ(made.orders().size(), 1U);
}

TEST(PlanOrder, OnlyTheRangeThatIsPlannedIsReordered) {
  Graph graph = two_branches();
  const Plan made = plan(graph, {.order = "best", .nodes = NodeRange{0, 4}});
  EXPECT_EQ(made.peak_bytes(), 1020U) << "a and b survive";
  ASSERT_EQ(made.tables().order.size(), 4U);
  const Plan late = plan(graph, {.order = "best", .nodes = NodeRange{2, 5}});
  EXPECT_TRUE(late.has_locations());
}

TEST(PlanOrder, RefusesWhatItDoesNotKnow) {
  PlanOptions options{.order = "random"};
  EXPECT_ERROR((void)plan(two_branches(), options), ArgumentError, ErrorCode::invalid_argument);
  options = {.order = "best", .parallel = 2};
  EXPECT_ERROR((void)plan(two_branches(), options), ArgumentError, ErrorCode::invalid_argument);
}

TEST(PlanOrder, EachRuleByNameIsNeverWorseThanTheOrderGiven) {
  ASSERT_FALSE(plan_orders().empty());
  for (const PlanOrder& order : plan_orders())
    EXPECT_LE(plan(two_branches(), {.order = std::string(order.name)}).peak_bytes(), 2010U) << order.name;
}

TEST(PlanOrder, IsWrittenAndReadWithThePlan) {
  const Plan made = plan(two_branches(), {.order = "best"});
  const Plan again = read_plan_json(to_json(PlanFile{made}));
  EXPECT_EQ(again.tables(), made.tables());
  Graph marked = two_branches(true);
  JsonWriter json;
  marked.write_json(json);
  EXPECT_TRUE(read_graph_json(json.take()).nodes[3].side_effects);
}

TEST(PlanOrder, ACapacityThatOnlyAnotherOrderHoldsIsHeld) {
  EXPECT_EQ(plan(two_branches(), {.capacity_bytes = 1500}).outcome(), PlanOutcome::infeasible);
  EXPECT_EQ(plan(two_branches(), {.order = "best", .capacity_bytes = 1500}).peak_bytes(), 1020U);
}

void add_side_effects(Random& random, Graph& graph) {
  for (GraphNode& node : graph.nodes) node.side_effects = random.one_in(5);
}

TEST(RandomOrders, AreVerifiedNeverWorseAndTheSameAgain) {
  Random random(seed());
  const std::uint64_t runs = scaled(20'000, 300);
  std::uint64_t changed = 0;
  for (std::uint64_t i = 0; i < runs; ++i) {
    Graph graph = random_graph(random, 24);
    add_side_effects(random, graph);
    PlanOptions options;
    options.inplace = !random.one_in(4);
    const std::size_t given = plan(graph, options).peak_bytes();
    options.order = "best";
    const Plan made = plan(graph, options);
    ASSERT_LE(made.peak_bytes(), given) << "run " << i;
    ASSERT_EQ(made.tables().order.empty(), made.peak_bytes() == given) << "run " << i << ": only a smaller peak is a reason";
    changed += !made.tables().order.empty();
    if (i % 8 != 0) continue;
    ASSERT_EQ(plan(graph, options).tables(), made.tables()) << "run " << i;
    const ShadowReport report = shadow_run(place(made));
    ASSERT_TRUE(report.ok()) << "run " << i << ": " << report.wrong.front();
    NodeId last = 0;
    for (const NodeId n : made.nodes_in_order()) {
      if (!graph.nodes[n].side_effects) continue;
      ASSERT_LE(last, n) << "run " << i;
      last = n;
    }
  }
  EXPECT_GT(changed, runs / 20);
  did(std::to_string(runs) + " graphs, " + std::to_string(changed) + " with a better order");
}

// ---- The verifier, on orders with one known error.

struct OrderedCase {
  Graph graph = two_branches();
  PlanTables tables = plan(graph, {.order = "best"}).tables();
};

void expect_order_caught(const OrderedCase& wrong) {
  const std::vector<PlanProblem> problems = verify_plan(wrong.graph, wrong.tables);
  ASSERT_FALSE(problems.empty());
  EXPECT_EQ(to_string(problems.front().kind), to_string(PlanProblem::Kind::order)) << problems.front().text;
}

TEST(PlantedOrders, AreCaught) {
  ASSERT_TRUE(verify_plan(OrderedCase().graph, OrderedCase().tables).empty());
  OrderedCase twice;
  twice.tables.order[1] = twice.tables.order[0];
  expect_order_caught(twice);
  OrderedCase missing;
  missing.tables.order.pop_back();
  expect_order_caught(missing);
  OrderedCase stranger;
  stranger.tables.order[2] = 99;
  expect_order_caught(stranger);
  OrderedCase early;  // reads a value before it is written
  std::swap(early.tables.order[3], early.tables.order[4]);
  expect_order_caught(early);
  OrderedCase effects;  // declared afterwards: the order violates them
  for (GraphNode& node : effects.graph.nodes) node.side_effects = true;
  expect_order_caught(effects);
  OrderedCase parallel;
  parallel.tables.parallel = 2;
  expect_order_caught(parallel);
}

TEST(PlantedOrders, AnOrderThatIsLeftOutIsFoundInTheRun) {
  OrderedCase wrong;
  wrong.tables.order.clear();  // then the locations are for other lifetimes
  EXPECT_FALSE(verify_plan(wrong.graph, wrong.tables).empty());
}

TEST(PlantedOrders, OfRandomPlansAreCaught) {
  Random random(seed());
  std::uint64_t tried = 0;
  for (std::uint64_t i = 0; i < scaled(5'000, 200); ++i) {
    const Graph graph = random_graph(random, 24);
    PlanTables tables = plan(graph, {.order = "best"}).tables();
    if (tables.order.size() < 2) continue;
    // A node before one whose value it reads.
    for (std::size_t k = 1; k < tables.order.size(); ++k) {
      const GraphNode& reader = graph.nodes[tables.order[k]];
      const GraphNode& writer = graph.nodes[tables.order[k - 1]];
      const bool reads = std::any_of(reader.inputs.begin(), reader.inputs.end(), [&](ValueId v) {
        return v != kNoValue && std::count(writer.outputs.begin(), writer.outputs.end(), v) != 0;
      });
      if (!reads || !reader.ignored_inputs.empty()) continue;
      PlanTables wrong = tables;
      std::swap(wrong.order[k], wrong.order[k - 1]);
      ASSERT_FALSE(verify_plan(graph, wrong).empty()) << "run " << i;
      ++tried;
    }
  }
  EXPECT_GT(tried, 0U);
  did(std::to_string(tried) + " wrong orders caught");
}

}  // namespace
}  // namespace berth::testing
