// SPDX-License-Identifier: Apache-2.0
#include "berth/plan/budget.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "plan/random_graph.h"
#include "support/errors.h"
#include "support/everything.h"
#include "support/scale.h"

// What to recompute and what to offload, so that a graph fits a budget.
namespace berth::testing {

using namespace internal::base;

namespace {

using ItemKind = BudgetItem::Kind;

// A small training step: `layers` activations, which live until the backward pass reads them, the last one
// first.
Graph there_and_back(int layers, std::size_t bytes = 100, bool side_effects = false) {
  Graph graph;
  std::vector<ValueId> kept = {graph.add_value({.name = "x", .bytes = bytes, .external = true})};
  for (int i = 0; i < layers; ++i) {
    const ValueId next = graph.add_value({.name = "a" + std::to_string(i), .bytes = bytes});
    graph.add_node({.name = "there" + std::to_string(i), .inputs = {kept.back()}, .outputs = {next}, .side_effects = side_effects});
    kept.push_back(next);
  }
  ValueId gradient = kept.back();
  for (int i = layers; i-- > 0;) {
    const ValueId next = graph.add_value({.name = "g" + std::to_string(i), .bytes = bytes, .output = i == 0});
    graph.add_node({.name = "back" + std::to_string(i), .inputs = {gradient, kept[static_cast<std::size_t>(i)]}, .outputs = {next}});
    gradient = next;
  }
  return graph;
}

// Each proposal fits, matches the graph that its items produce, and needs every one of them.
void expect_sound(const BudgetAnswer& answer, const BudgetOptions& options) {
  for (const BudgetProposal& proposal : answer.proposals) {
    ASSERT_FALSE(proposal.items.empty());
    ASSERT_TRUE(proposal.plan.has_locations());
    ASSERT_LE(proposal.plan.tables().arenas[options.device].bytes, options.budget_bytes) << proposal.name;
    ASSERT_TRUE(verify_plan(proposal.plan.graph(), proposal.plan.tables()).empty());
    ASSERT_TRUE(answer.plan.tables().order.empty()) << "items speak of the nodes as the plan's graph has them";
    for (std::size_t i = 0; i < proposal.items.size(); ++i) {
      std::vector<BudgetItem> fewer = proposal.items;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      PlanOptions again = options.plan;
      again.order = "given";
      const Plan without = plan(with_items(answer.plan.graph(), fewer, "elsewhere:0"), again);
      ASSERT_GT(without.tables().arenas[options.device].bytes, options.budget_bytes) << proposal.name << ": item " << i << " is not needed";
    }
  }
}

TEST(Budget, WhatFitsNeedsNothing) {
  const BudgetAnswer answer = plan_budget(there_and_back(4), {.budget_bytes = 600});
  EXPECT_TRUE(answer.fits);
  EXPECT_EQ(answer.over_bytes, 0U);
  EXPECT_TRUE(answer.proposals.empty());
}

TEST(Budget, SaysByHowMuchAndWhatToDo) {
  const BudgetOptions options{.budget_bytes = 450, .bandwidth = 1000};
  const BudgetAnswer answer = plan_budget(there_and_back(6), options);
  EXPECT_FALSE(answer.fits);
  EXPECT_EQ(answer.plan.peak_bytes(), 700U);
  EXPECT_EQ(answer.over_bytes, 250U);
  EXPECT_EQ(answer.least_bytes, 300U) << "two inputs and an output";
  ASSERT_FALSE(answer.proposals.empty());
  expect_sound(answer, options);
  const auto moved = std::find_if(answer.proposals.begin(), answer.proposals.end(), [](const auto& one) { return one.name == "move"; });
  ASSERT_NE(moved, answer.proposals.end());
  EXPECT_EQ(moved->bytes_moved, 2 * 100 * moved->items.size());
  EXPECT_DOUBLE_EQ(moved->time_s, static_cast<double>(moved->bytes_moved) / 1000) << "at the bandwidth";
  EXPECT_TRUE(
      std::any_of(moved->plan.graph().nodes.begin(), moved->plan.graph().nodes.end(), [](const auto& n) { return n.op == "MoveBack"; }));
}

TEST(Budget, RecomputesWhatIsCheapToMakeAgain) {
  // Every value that is kept is computed from external values.
  Graph graph;
  const ValueId x = graph.add_value({.name = "x", .bytes = 8, .external = true});
  std::vector<ValueId> kept;
  for (int i = 0; i < 4; ++i) {
    kept.push_back(graph.add_value({.name = "k" + std::to_string(i), .bytes = 100}));
    const ValueId used = graph.add_value({.bytes = 10});
    graph.add_node({.name = "make" + std::to_string(i), .inputs = {x}, .outputs = {kept.back()}});
    graph.add_node({.inputs = {kept.back()}, .outputs = {used}});
  }
  for (const ValueId v : kept) graph.add_node({.inputs = {v}, .outputs = {graph.add_value({.bytes = 10})}});
  const BudgetOptions options{.budget_bytes = 220};
  const BudgetAnswer answer = plan_budget(graph, options);
  ASSERT_FALSE(answer.proposals.empty());
  EXPECT_EQ(answer.proposals.front().name, "recompute");
  EXPECT_EQ(answer.proposals.front().items.front().again.size(), 1U);
  EXPECT_EQ(answer.proposals.front().bytes_moved, 0U);
  expect_sound(answer, options);
}

TEST(Budget, NeverRunsSideEffectsAgain) {
  const BudgetOptions options{.budget_bytes = 450};
  const BudgetAnswer answer = plan_budget(there_and_back(6, 100, true), options);
  ASSERT_FALSE(answer.proposals.empty());
  for (const BudgetProposal& proposal : answer.proposals)
    for (const BudgetItem& item : proposal.items) EXPECT_EQ(item.kind, ItemKind::move);
  expect_sound(answer, options);
}

TEST(Budget, OneNodeThatNeedsMoreCannotBeHelped) {
  const BudgetAnswer answer = plan_budget(there_and_back(6), {.budget_bytes = 250});
  EXPECT_FALSE(answer.fits);
  EXPECT_GT(answer.least_bytes, 250U);
  EXPECT_TRUE(answer.proposals.empty());
}

TEST(Budget, AnotherOrderComesFirst) {
  Graph graph = there_and_back(5);
  BudgetOptions options{.budget_bytes = 400};
  options.plan.order = "best";
  const BudgetAnswer answer = plan_budget(graph, options);
  ASSERT_NO_FATAL_FAILURE(expect_sound(answer, options));
  EXPECT_FALSE(answer.proposals.empty());
}

TEST(Budget, RefusesWhatHasNoMeaning) {
  const Graph graph = there_and_back(2);
  BudgetOptions options{.budget_bytes = 100, .device = 3};
  EXPECT_ERROR((void)plan_budget(graph, options), ArgumentError, ErrorCode::invalid_argument);
  options = {.budget_bytes = 100, .bandwidth = 0};
  EXPECT_ERROR((void)plan_budget(graph, options), ArgumentError, ErrorCode::invalid_argument);
  options = {.budget_bytes = 100, .move_to = "cpu:0"};
  EXPECT_ERROR((void)plan_budget(graph, options), ArgumentError, ErrorCode::invalid_argument);
  options = {.budget_bytes = 100};
  options.plan.parallel = 2;
  EXPECT_ERROR((void)plan_budget(graph, options), ArgumentError, ErrorCode::invalid_argument);
  const std::vector<BudgetItem> stranger = {{.kind = ItemKind::move, .value = 99}};
  EXPECT_ERROR((void)with_items(graph, stranger, "cpu:1"), ArgumentError, ErrorCode::invalid_argument);
  const std::vector<BudgetItem> backwards = {{.kind = ItemKind::move, .value = 1, .after = 2, .before = 1}};
  EXPECT_ERROR((void)with_items(graph, backwards, "cpu:1"), ArgumentError, ErrorCode::invalid_argument);
}

TEST(RandomBudgets, AreMetByProposalsThatAreMinimalAndRun) {
  Random random(seed());
  std::uint64_t proposals = 0;
  std::uint64_t items = 0;
  const std::uint64_t runs = scaled(1'000, 40);
  for (std::uint64_t i = 0; i < runs; ++i) {
    Graph graph = random_graph(random, 32);
    for (GraphNode& node : graph.nodes) node.side_effects = random.one_in(6);
    const Plan made = plan(graph);
    const std::size_t peak = made.tables().arenas[0].bytes;
    if (peak < 64) continue;
    BudgetOptions options{.budget_bytes = peak - 1 - random.below(peak / 3), .move_to = "elsewhere:0"};
    const BudgetAnswer answer = plan_budget(graph, options);
    ASSERT_EQ(answer.over_bytes, peak - options.budget_bytes) << "run " << i;
    ASSERT_NO_FATAL_FAILURE(expect_sound(answer, options)) << "run " << i;
    ASSERT_EQ(plan_budget(graph, options).proposals.size(), answer.proposals.size()) << "run " << i;
    for (const BudgetProposal& proposal : answer.proposals) {
      ASSERT_GE(options.budget_bytes, answer.least_bytes) << "run " << i;
      ++proposals;
      items += proposal.items.size();
      Graph here = proposal.plan.graph();
      if (here.devices.size() > 2 || std::find(here.devices.begin(), here.devices.end(), "sim:0") != here.devices.end()) continue;
      if (here.devices.size() == 2) here.devices[1] = "sim:0";  // a device that exists
      const ShadowReport report = shadow_run(place(Plan(std::make_shared<const Graph>(here), proposal.plan.tables())));
      ASSERT_TRUE(report.ok()) << "run " << i << ": " << report.wrong.front();
    }
  }
  EXPECT_GT(proposals, runs / 10);
  did(std::to_string(runs) + " graphs, " + std::to_string(proposals) + " proposals of " + std::to_string(items) + " items");
}

}  // namespace
}  // namespace berth::testing
