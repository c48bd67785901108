// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "plan/random_graph.h"
#include "support/everything.h"
#include "support/scale.h"

// Random graphs through the whole pipeline. Every plan that `plan` returns has passed the verifier; here it is
// also executed, byte by byte.
namespace berth::testing {

using namespace internal::base;

namespace {

PlanOptions random_options(Random& random) {
  PlanOptions options;
  const auto strategies = plan_strategies();
  const std::uint64_t kind = random.below(strategies.size() + 4);
  options.strategy = kind < strategies.size() ? std::string(strategies[kind].name) : kind == strategies.size() ? "offsets" : "best";
  options.inplace = !random.one_in(8);
  if (random.one_in(3) && options.strategy != "slots_plain") {
    options.parallel = static_cast<int>(2 + random.below(3));
    options.most_edges = random.below(6);
  }
  if (random.one_in(5)) options.alignment = std::size_t{1} << random.below(8);
  if (options.strategy.starts_with("slots") && random.one_in(2)) options.match_range = static_cast<int>(random.below(5));
  return options;
}

// Offsets that values must have, or prefer.
void add_offsets(Random& random, Graph& graph) {
  for (GraphValue& value : graph.values) {
    const std::size_t offset = 128 * random.below(4);
    if (random.one_in(8)) (random.one_in(2) ? value.fixed_offset : value.preferred_offset) = offset;
  }
}

NodeRange random_range(Random& random, const Graph& graph) {
  const auto nodes = static_cast<NodeId>(graph.nodes.size());
  const auto begin = static_cast<NodeId>(random.below(nodes + 1));
  return {begin, static_cast<NodeId>(begin + random.below(nodes - begin + 1))};
}

void expect_sound(const Plan& plan) {
  if (!plan.has_locations()) {
    ASSERT_EQ(plan.peak_bytes(), 0U);
    return;
  }
  ASSERT_LE(plan.lower_bound_bytes(), plan.peak_bytes());
  ASSERT_EQ(plan.outcome() == PlanOutcome::optimal, plan.peak_bytes() == plan.lower_bound_bytes());
}

TEST(RandomPlans, AllAreVerified) {
  Random random(seed());
  const std::uint64_t runs = scaled(200'000, 500);
  std::uint64_t shared = 0;
  std::uint64_t edges = 0;
  std::uint64_t planned = 0;
  for (std::uint64_t i = 0; i < runs; ++i) {
    Graph graph = random_graph(random);
    PlanOptions options = random_options(random);
    if (random.one_in(6)) options.nodes = random_range(random, graph);
    if (!options.strategy.starts_with("slots") && random.one_in(6)) add_offsets(random, graph);
    if (random.one_in(8)) options.capacity_bytes = random.below(400);
    const Plan made = plan(std::move(graph), options);
    ASSERT_NO_FATAL_FAILURE(expect_sound(made)) << "run " << i;
    planned += made.has_locations();
    for (const ValueLocation& location : made.tables().locations) shared += location.planned() && location.reuse != Reuse::own;
    edges += made.tables().edges.size();
  }
  EXPECT_GT(planned, runs / 2);
  EXPECT_GT(shared, runs / 4);
  EXPECT_GT(edges, runs / 100);
  did(std::to_string(runs) + " plans verified, " + std::to_string(shared) + " values shared, " + std::to_string(edges) + " edges added");
}

TEST(RandomPlans, NothingIsOverwrittenEarlyInAShadowRun) {
  Random random(seed());
  const std::uint64_t runs = scaled(20'000, 100);
  for (std::uint64_t i = 0; i < runs; ++i) {
    const Placement memory = place(plan(random_graph(random), random_options(random)));
    const bool parallel = memory.plan().tables().parallel > 1;
    const std::vector<NodeId> order = parallel ? random_order(random, memory.plan()) : std::vector<NodeId>();
    const ShadowReport report = shadow_run(memory, order);
    ASSERT_TRUE(report.ok()) << "run " << i << ": " << report.wrong.front();
  }
  did(std::to_string(runs) + " shadow runs");
}

TEST(RandomPlans, TheSameInputGivesTheSamePlan) {
  Random random(seed());
  for (std::uint64_t i = 0; i < scaled(5'000, 100); ++i) {
    const Graph graph = random_graph(random);
    const PlanOptions options = random_options(random);
    ASSERT_EQ(plan(graph, options).tables(), plan(graph, options).tables()) << "run " << i;
  }
}

// The smallest peak of at most seven buffers, by packing them lowest-first in every order: some order gives an
// optimal packing.
std::size_t least_peak(const std::vector<Plan::Buffer>& buffers) {
  std::vector<std::size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::size_t least = SIZE_MAX;
  do {
    std::vector<std::size_t> offsets(buffers.size());
    std::size_t peak = 0;
    for (std::size_t k = 0; k < order.size(); ++k) {
      const Plan::Buffer& one = buffers[order[k]];
      std::size_t offset = 0;
      for (bool moved = true; moved;) {
        moved = false;
        for (std::size_t j = 0; j < k; ++j) {
          const Plan::Buffer& other = buffers[order[j]];
          const bool together = other.life.begin < one.life.end && one.life.begin < other.life.end;
          if (together && offsets[order[j]] < offset + one.bytes && offset < offsets[order[j]] + other.bytes) {
            offset = offsets[order[j]] + other.bytes;
            moved = true;
          }
        }
      }
      offsets[order[k]] = offset;
      peak = std::max(peak, offset + one.bytes);
    }
    least = std::min(least, peak);
  } while (std::next_permutation(order.begin(), order.end()));
  return least;
}

// A graph whose values have given lifetimes.
Graph graph_of_lives(Random& random, std::size_t count) {
  Graph graph;
  const NodeId steps = static_cast<NodeId>(2 + random.below(5));
  graph.nodes.resize(steps);
  for (std::size_t i = 0; i < count; ++i) {
    const ValueId v = graph.add_value({.bytes = 1 + random.below(6)});
    const auto begin = static_cast<NodeId>(random.below(steps));
    const auto last = static_cast<NodeId>(begin + random.below(steps - begin));
    graph.nodes[begin].outputs.push_back(v);
    if (last != begin) graph.nodes[last].inputs.push_back(v);
  }
  return graph;
}

TEST(RandomPlans, BruteForceAgreesForUpToSevenValues) {
  Random random(seed());
  const std::uint64_t runs = scaled(20'000, 200);
  std::uint64_t at_bound = 0;
  for (std::uint64_t i = 0; i < runs; ++i) {
    const Plan made = plan(graph_of_lives(random, 1 + random.below(7)));
    const std::size_t least = least_peak(made.buffers());
    ASSERT_LE(made.lower_bound_bytes(), least) << "run " << i;
    ASSERT_EQ(made.peak_bytes(), least) << "run " << i;
    at_bound += made.outcome() == PlanOutcome::optimal;
  }
  did(std::to_string(runs) + " instances, " + std::to_string(at_bound) + " at the bound");
}

}  // namespace
}  // namespace berth::testing
