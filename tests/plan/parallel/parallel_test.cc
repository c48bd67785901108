// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "berth/plan/parallel.h"
#include "plan/parallel/run_at_once.h"
#include "plan/random_graph.h"
#include "support/errors.h"
#include "support/everything.h"
#include "support/scale.h"

// Plans for nodes that may run at once.
namespace berth::testing {

using namespace internal::base;

namespace {

// Two chains of four nodes, listed in turn, each value read by the next node of its chain; the last are outputs.
Graph two_chains() {
  Graph graph;
  ValueId last[2] = {kNoValue, kNoValue};
  for (int i = 0; i < 4; ++i)
    for (int chain = 0; chain < 2; ++chain) {
      const std::string name = std::string(chain == 0 ? "L" : "R") + std::to_string(i);
      const ValueId next = graph.add_value({.name = name, .bytes = 64, .output = i == 3});
      GraphNode node{.name = name, .outputs = {next}};
      if (last[chain] != kNoValue) node.inputs = {last[chain]};
      graph.add_node(std::move(node));
      last[chain] = next;
    }
  return graph;
}

TEST(Parallel, TwoChainsStaySideBySide) {
  const Plan made = plan(two_chains(), {.parallel = 2});
  EXPECT_TRUE(made.tables().edges.empty());
  EXPECT_EQ(made.peak_bytes(), 256U) << "two values of each chain";
  EXPECT_EQ(made.outcome(), PlanOutcome::optimal);
  EXPECT_EQ(made.tables().colours, (std::vector<std::uint32_t>{0, 1, 0, 1, 0, 1, 0, 1}));
  EXPECT_FALSE(made.tables().conservative);
  for (std::uint64_t i = 0; i < scaled(1'000, 50); ++i) ASSERT_EQ(RunAtOnce(made, seed() + i).run(2), "");
}

TEST(Parallel, EdgesBuyMemoryDownToThatOfNodesInOrder) {
  const Graph graph = two_chains();
  const std::size_t in_order = plan(graph).peak_bytes();
  ASSERT_EQ(in_order, 192U);
  const Plan made = plan(graph, {.parallel = 2, .most_edges = 100});
  EXPECT_EQ(made.peak_bytes(), in_order);
  ASSERT_GE(made.trades().size(), 2U);
  EXPECT_EQ(made.trades().front(), (EdgeTrade{0, 256, 4}));
  EXPECT_EQ(made.trades().back().edges, made.tables().edges.size());
  EXPECT_EQ(made.trades().back().peak_bytes, in_order);
  EXPECT_EQ(made.trades().back().longest_path, longest_path(graph, {}, made.tables().edges));
  EXPECT_GT(longest_path(graph, {}, made.tables().edges), 4U);
}

TEST(Parallel, TheLongestPathIsInTheCostsOfNodes) {
  Graph graph = two_chains();
  EXPECT_EQ(longest_path(graph), 4U);
  graph.nodes[3].cost = 10;  // R1
  EXPECT_EQ(longest_path(graph), 13U);
  EXPECT_EQ(longest_path(graph, {0, 4}), 11U);
  const PlanEdge edge{6, 7};  // L3 before R3
  EXPECT_EQ(longest_path(graph, {}, std::span(&edge, 1)), 13U);
  graph.nodes[6].cost = UINT64_MAX;
  EXPECT_EQ(longest_path(graph, {}, std::span(&edge, 1)), UINT64_MAX) << "no sum goes round";
  EXPECT_ERROR((void)longest_path(graph, {3, 99}), ArgumentError, ErrorCode::out_of_bounds);
}

TEST(Parallel, CostsAreWrittenAndRead) {
  Graph graph = two_chains();
  graph.nodes[2].cost = 7;
  JsonWriter json;
  graph.write_json(json);
  const Graph again = read_graph_json(json.take());
  EXPECT_EQ(again.nodes[1].cost, 1U);
  EXPECT_EQ(again.nodes[2].cost, 7U);
}

TEST(Parallel, ColoursGoToTheLongestPathsFirst) {
  Graph graph;
  const ValueId a = graph.add_value({.bytes = 8});
  const ValueId b = graph.add_value({.bytes = 8});
  const ValueId c = graph.add_value({.bytes = 8});
  graph.add_node({.outputs = {a}});
  graph.add_node({.inputs = {a}, .outputs = {b}});
  graph.add_node({.inputs = {a}, .outputs = {c}});
  graph.add_node({.inputs = {b}});
  graph.add_node({});
  EXPECT_EQ(colour_nodes(graph, {}, 3), (std::vector<std::uint32_t>{0, 0, 1, 0, 2}));
  EXPECT_EQ(colour_nodes(graph, {}, 2), (std::vector<std::uint32_t>{0, 0, 1, 0, 1}));
  EXPECT_EQ(colour_nodes(graph, {2, 5}, 2), (std::vector<std::uint32_t>{0, 1, 1}));
  EXPECT_ERROR((void)colour_nodes(graph, {}, 0), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_ERROR((void)colour_nodes(graph, {0, 9}, 2), ArgumentError, ErrorCode::out_of_bounds);
}

TEST(Parallel, InPlaceIsTakenWhereTheOtherReadersAreSurelyDone) {
  Graph graph;
  const ValueId x = graph.add_value({.name = "x", .bytes = 64});
  const ValueId z = graph.add_value({.name = "z", .bytes = 8});
  const ValueId y = graph.add_value({.name = "y", .bytes = 64, .output = true});
  graph.add_node({.outputs = {x}});
  graph.add_node({.name = "another reader", .inputs = {x}, .outputs = {z}});
  graph.add_node({.inputs = {x}, .outputs = {y}, .inplace = {{}}});
  const Plan apart = plan(graph, {.parallel = 2});
  EXPECT_EQ(apart.location(y).reuse, Reuse::own);
  EXPECT_TRUE(apart.tables().edges.empty());
  const Plan bought = plan(graph, {.parallel = 2, .most_edges = 1});
  EXPECT_EQ(bought.location(y).reuse, Reuse::in_place);
  EXPECT_EQ(bought.tables().edges, (std::vector<PlanEdge>{{1, 2}}));
  graph.nodes[2].inputs.push_back(z);  // now the graph says it
  EXPECT_EQ(plan(graph, {.parallel = 2}).location(y).reuse, Reuse::in_place);
}

TEST(Parallel, AnIdentityMayHaveReadersThatRunAtOnce) {
  Graph graph;
  const ValueId x = graph.add_value({.name = "x", .bytes = 64});
  const ValueId y = graph.add_value({.name = "y", .bytes = 64});
  graph.add_node({.outputs = {x}});
  graph.add_node({.inputs = {x}});
  graph.add_node({.inputs = {x}, .outputs = {y}, .inplace = {{.identity = true}}});
  graph.add_node({.inputs = {y}});
  EXPECT_EQ(plan(graph, {.parallel = 2}).location(y).reuse, Reuse::identity);
}

TEST(Parallel, TheBoundIsTheHeaviestSetOfWhichNoneSurelyEndsBeforeAnother) {
  // In order at most three values are live, but the middles of the four branches may run at once.
  Graph graph;
  const ValueId x = graph.add_value({.name = "x", .bytes = 8});
  graph.add_node({.outputs = {x}});
  for (int i = 0; i < 4; ++i) {
    const ValueId big = graph.add_value({.bytes = 100});
    graph.add_node({.inputs = {x}, .outputs = {big}});
    graph.add_node({.inputs = {big}});
  }
  EXPECT_EQ(plan(graph).peak_bytes(), 108U);
  const Plan made = plan(graph, {.parallel = 4});
  EXPECT_EQ(made.peak_bytes(), 408U);
  EXPECT_EQ(made.outcome(), PlanOutcome::optimal);
  const PlanArena& arena = made.tables().arenas[0];
  EXPECT_EQ(arena.proof.by, BoundProof::By::unordered);
  EXPECT_EQ(arena.proof.values.size(), 5U);
  EXPECT_EQ(made.describe_bound(), "5 buffers that may be in use at once");
  const auto with_proof = [&](std::vector<ValueId> values, std::size_t bytes) {
    PlanTables tables = made.tables();
    tables.arenas[0].proof.values = std::move(values);
    tables.arenas[0].lower_bound_bytes = bytes;
    tables.outcome = PlanOutcome::feasible;
    return verify_plan(graph, tables, 1);
  };
  EXPECT_TRUE(with_proof(arena.proof.values, 408).empty());
  EXPECT_FALSE(with_proof({0, 1, 2, 3}, 408).empty()) << "they are 308";
  EXPECT_FALSE(with_proof({0, 1, 2, 3, 3}, 408).empty()) << "one twice";
  EXPECT_FALSE(with_proof({0, 1, 2, 3, 99}, 408).empty()) << "one is not there";
  EXPECT_FALSE(with_proof({0, 1, 2, 3, 4}, 409).empty());
}

TEST(Parallel, ABoundOfBuffersThatAreOrderedIsRefused) {
  const Graph graph = two_chains();
  PlanTables tables = plan(graph, {.parallel = 2}).tables();
  tables.outcome = PlanOutcome::feasible;
  tables.arenas[0].proof = {BoundProof::By::unordered, {}, {0, 1, 2, 3}};  // L0, R0, L1, R1
  EXPECT_TRUE(verify_plan(graph, tables, 1).empty());
  tables.arenas[0].proof.values = {0, 1, 4, 3};  // L0 ends before L2 begins
  EXPECT_FALSE(verify_plan(graph, tables, 1).empty());
}

TEST(Parallel, EdgesAreForParallelPlans) {
  EXPECT_ERROR((void)plan(two_chains(), {.most_edges = 1}), ArgumentError, ErrorCode::invalid_argument);
}

TEST(Parallel, SaysThatACapacityCannotBeHeldWithoutEdges) {
  const Graph graph = two_chains();
  const Plan made = plan(graph, {.parallel = 2, .capacity_bytes = 200});
  EXPECT_EQ(made.outcome(), PlanOutcome::infeasible);
  EXPECT_EQ(made.lower_bound_bytes(), 256U);
  EXPECT_EQ(plan(graph, {.parallel = 2, .most_edges = 8, .capacity_bytes = 200}).peak_bytes(), 192U);
}

TEST(Parallel, ArenasAndChunksKeepBranchesApart) {
  const Graph graph = two_chains();
  const Plan made = plan(graph, {.parallel = 2, .max_chunk_bytes = 128});
  EXPECT_TRUE(made.tables().edges.empty());
  EXPECT_TRUE(made.tables().conservative);
  EXPECT_FALSE(made.tables().chunks.empty());
  EXPECT_EQ(RunAtOnce(made, seed()).run(2), "");
}

// A chain of diamonds: a node, so many branches of two nodes each, and the next node.
Graph diamonds(std::size_t count, std::size_t branches) {
  Graph graph;
  ValueId last = graph.add_value({.bytes = 64});
  graph.add_node({.outputs = {last}});
  for (std::size_t i = 0; i < count; ++i) {
    GraphNode join;
    for (std::size_t b = 0; b < branches; ++b) {
      const ValueId one = graph.add_value({.bytes = 64});
      const ValueId other = graph.add_value({.bytes = 64});
      graph.add_node({.inputs = {last}, .outputs = {one}});
      graph.add_node({.inputs = {one}, .outputs = {other}});
      join.inputs.push_back(other);
    }
    last = graph.add_value({.bytes = 64, .output = i + 1 == count});
    join.outputs = {last};
    graph.add_node(std::move(join));
  }
  return graph;
}

TEST(Parallel, OfVeryManyNodesWhatIsNotKnownCountsAsConcurrent) {
  const Plan small = plan(diamonds(3, 2), {.parallel = 2});
  EXPECT_FALSE(small.tables().conservative);
  const Plan large = plan(diamonds(13'000, 2), {.parallel = 2});
  EXPECT_TRUE(large.tables().conservative);
  EXPECT_TRUE(large.tables().edges.empty());
  EXPECT_LE(large.peak_bytes(), 2 * small.peak_bytes()) << "diamonds one after another share their bytes";
  EXPECT_EQ(RunAtOnce(large, seed()).run(2), "");
  JsonWriter json;
  json.begin_object();
  large.write_json(json);
  json.end_object();
  EXPECT_NE(json.take().find("\"conservative\":true"), std::string::npos);
}

// ---- Random graphs.

PlanOptions random_options(Random& random) {
  PlanOptions options;
  const auto strategies = plan_strategies();
  const std::uint64_t kind = random.below(strategies.size() + 4);
  options.strategy = kind < strategies.size() ? std::string(strategies[kind].name) : kind == strategies.size() ? "offsets" : "best";
  if (options.strategy == "slots_plain") options.strategy = "slots";  // that rule is for nodes in order
  options.inplace = !random.one_in(8);
  options.parallel = static_cast<int>(2 + random.below(3));
  if (random.one_in(5)) options.alignment = std::size_t{1} << random.below(8);
  if (options.strategy == "slots" && random.one_in(2)) options.match_range = static_cast<int>(random.below(5));
  return options;
}

TEST(RandomParallel, NothingIsOverwrittenEarlyByThreadsWithoutEdges) {
  Random random(seed());
  const std::uint64_t runs = scaled(200'000, 500);
  std::uint64_t shared = 0;
  for (std::uint64_t i = 0; i < runs; ++i) {
    const Plan made = plan(random_graph(random, 24), random_options(random));
    ASSERT_TRUE(made.tables().edges.empty()) << "run " << i;
    ASSERT_EQ(RunAtOnce(made, random.next()).run(2 + i % 2), "") << "run " << i;
    shared += made.peak_bytes() < made.naive_bytes();
  }
  EXPECT_GT(shared, runs / 10);
  did(std::to_string(runs) + " graphs run by threads, " + std::to_string(shared) + " with less than without reuse");
}

TEST(RandomParallel, MoreEdgesNeverNeedMoreAndAreNeverTooMany) {
  Random random(seed());
  const std::uint64_t runs = scaled(20'000, 100);
  std::uint64_t bought = 0;
  std::uint64_t saved = 0;
  for (std::uint64_t i = 0; i < runs; ++i) {
    const Graph graph = random_graph(random, 24);
    PlanOptions options = random_options(random);
    std::size_t before = SIZE_MAX;
    for (const unsigned edges : {0U, 1U, 2U, 3U, 5U, 8U, 1000U}) {
      options.most_edges = edges;
      const Plan made = plan(graph, options);
      ASSERT_LE(made.tables().edges.size(), edges) << "run " << i;
      ASSERT_LE(made.peak_bytes(), before) << "run " << i << ", " << edges << " edges";
      saved += before != SIZE_MAX && made.peak_bytes() < before;
      before = made.peak_bytes();
      if (edges != 0 && !made.tables().edges.empty()) {
        ASSERT_EQ(RunAtOnce(made, random.next()).run(2), "") << "run " << i;
        ++bought;
      }
    }
    options.parallel = 1;
    options.most_edges = 0;
    ASSERT_LE(before, plan(graph, options).peak_bytes()) << "run " << i << ": with enough edges it is as for nodes in order";
  }
  EXPECT_GT(saved, runs / 20);
  did(std::to_string(runs) + " graphs, " + std::to_string(bought) + " plans with edges run by threads");
}

}  // namespace
}  // namespace berth::testing
