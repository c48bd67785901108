// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "plan/random_graph.h"
#include "plan/reorder/improve.h"
#include "plan/reorder/orders.h"
#include "plan/reorder/ranges.h"
#include "plan/reorder/walk.h"
#include "support/scale.h"

// The search for orders, against every order of small graphs.
namespace berth::testing {

using namespace internal::base;

namespace {

using namespace internal::plan;

const Patience kForEver(std::nullopt, {});

OrderModel random_model(Random& random, std::size_t most_nodes) {
  Graph graph = random_graph(random, most_nodes);
  for (GraphNode& node : graph.nodes) node.side_effects = random.one_in(8);
  const NodeRange nodes{0, static_cast<NodeId>(graph.nodes.size())};
  return make_order_model(graph, nodes, find_lives(graph, nodes, 1), random.one_in(2));
}

std::vector<UnitId> as_given(const OrderModel& model) {
  std::vector<UnitId> order(model.units());
  std::iota(order.begin(), order.end(), UnitId{0});
  return order;
}

bool can_run(const OrderModel& model, const std::vector<UnitId>& order) {
  std::vector<bool> done(model.units(), false);
  for (const UnitId u : order) {
    if (done[u]) return false;
    for (const UnitId before : model.before[u])
      if (!done[before]) return false;
    done[u] = true;
  }
  return order.size() == model.units();
}

// The smallest peak over all orders, by enumeration.
std::size_t least_of_all_orders(const OrderModel& model) {
  std::vector<UnitId> order = as_given(model);
  std::size_t least = SIZE_MAX;
  do {
    if (can_run(model, order)) least = std::min(least, peak_of(model, order));
  } while (std::next_permutation(order.begin(), order.end()));
  return least;
}

TEST(Reorder, FindsTheLeastOfAllOrdersOfSmallGraphs) {
  Random random(seed());
  const std::uint64_t runs = scaled(3'000, 100);
  std::uint64_t lowered = 0;
  for (std::uint64_t i = 0; i < runs; ++i) {
    const OrderModel model = random_model(random, 8);
    if (model.units() == 0 || model.units() > 8) continue;
    const std::size_t least = least_of_all_orders(model);
    const ImprovedOrder improved = improve_order(model, as_given(model), kForEver);
    ASSERT_TRUE(can_run(model, improved.order)) << "run " << i;
    ASSERT_EQ(improved.peak_bytes, peak_of(model, improved.order)) << "run " << i;
    ASSERT_TRUE(improved.is_least) << "run " << i;
    ASSERT_EQ(improved.peak_bytes, least) << "run " << i;
    ASSERT_LE(least_need(model), least) << "run " << i;
    lowered += least < peak_of(model, as_given(model));
  }
  EXPECT_GT(lowered, runs / 50);
  did(std::to_string(runs) + " graphs, " + std::to_string(lowered) + " lowered");
}

TEST(Reorder, EveryRuleGivesAnOrderInWhichUnitsCanRun) {
  Random random(seed());
  for (std::uint64_t i = 0; i < scaled(2'000, 100); ++i) {
    const OrderModel model = random_model(random, 40);
    for (const OrderRule& rule : order_rules()) ASSERT_TRUE(can_run(model, rule.order(model))) << rule.name << ", run " << i;
  }
}

// Sources run once, before their first reader, and everything else in the order of the units.
TEST(Reorder, NodesInOrderAreAllNodes) {
  Random random(seed());
  for (std::uint64_t i = 0; i < scaled(2'000, 100); ++i) {
    const OrderModel model = random_model(random, 40);
    std::vector<NodeId> nodes = nodes_in_order(model, as_given(model));
    std::sort(nodes.begin(), nodes.end());
    std::vector<NodeId> all(model.nodes.end - model.nodes.begin);
    std::iota(all.begin(), all.end(), model.nodes.begin);
    ASSERT_EQ(nodes, all) << "run " << i;
  }
}

TEST(Reorder, BackwardsAndForwardsCountTheSame) {
  Random random(seed());
  for (std::uint64_t i = 0; i < scaled(5'000, 200); ++i) {
    const OrderModel model = random_model(random, 30);
    const std::vector<UnitId> order = order_rules()[i % order_rules().size()].order(model);
    ForwardWalk forwards(model);
    std::vector<std::size_t> before;  // live bytes before each unit
    for (const UnitId u : order) {
      before.push_back(forwards.live_bytes());
      forwards.run(u);
    }
    BackwardWalk backwards(model);
    // Values that survive and are computed by no unit of the order are live at the end of both.
    for (std::size_t k = order.size(); k-- > 0;) {
      backwards.run(order[k], [](UnitId) {});
      ASSERT_EQ(backwards.live_bytes(), before[k]) << "run " << i << ", unit " << k;
    }
  }
}

// Many branches of many sizes: the number of sets that may have run is maximal.
TEST(Reorder, GivesUpWhereThereAreTooManySets) {
  Random random(seed());
  Graph graph;
  std::vector<ValueId> ends;
  for (int i = 0; i < 60; ++i) {
    const ValueId x = graph.add_value({.bytes = 8, .external = true});
    ValueId last = x;
    for (int k = 0; k < 3; ++k) {
      const ValueId next = graph.add_value({.bytes = 1 + random.below(1000)});
      graph.add_node({.inputs = {last}, .outputs = {next}, .side_effects = false});
      last = next;
    }
    ends.push_back(last);
  }
  graph.add_node({.inputs = ends, .outputs = {graph.add_value({.bytes = 1, .output = true})}});
  const NodeRange nodes{0, static_cast<NodeId>(graph.nodes.size())};
  const OrderModel model = make_order_model(graph, nodes, find_lives(graph, nodes, 1), true);
  const std::vector<UnitId> order = as_given(model);
  const RangeAnswer answer = search_range({model, order, {0, order.size()}, peak_of(model, order), 0, 500, kForEver});
  EXPECT_TRUE(answer.gave_up);
  EXPECT_FALSE(answer.order);
  EXPECT_LT(answer.states, 1000U);
}

// By the definition: in every order, all other units run before it or after it.
TEST(Reorder, RangesAreCutWhereAllOrdersPass) {
  Random random(seed());
  std::uint64_t cuts = 0;
  for (std::uint64_t i = 0; i < scaled(5'000, 200); ++i) {
    const OrderModel model = random_model(random, 20);
    const std::size_t count = model.units();
    std::vector<std::vector<bool>> comes_before(count, std::vector<bool>(count, false));
    for (UnitId u = 0; u < count; ++u)
      for (const UnitId v : model.before[u]) {
        comes_before[v][u] = true;
        for (UnitId w = 0; w < count; ++w)
          if (comes_before[w][v]) comes_before[w][u] = true;
      }
    std::vector<std::size_t> expected;
    for (UnitId u = 0; u < count; ++u) {
      bool all = true;
      for (UnitId v = 0; v < count; ++v) all &= u == v || comes_before[u][v] || comes_before[v][u];
      if (all || u + 1 == count) expected.push_back(u + std::size_t{1});
    }
    std::vector<std::size_t> found;
    for (const OrderRange& range : independent_ranges(model, as_given(model))) found.push_back(range.end);
    ASSERT_EQ(found, expected) << "run " << i;
    cuts += found.size();
  }
  did(std::to_string(cuts) + " ranges");
}

}  // namespace
}  // namespace berth::testing
