// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "berth/plan/plan.h"
#include "berth/plan/read_graph.h"
#include "plan/lives_graph.h"
#include "plan/pack/parts.h"
#include "plan/pack/tight_instances.h"
#include "plan/verify/refute.h"
#include "support/errors.h"
#include "support/scale.h"

// Plans that are optimal though their peak exceeds the bytes that are live at any one time.
namespace berth::testing {

using namespace internal::base;

namespace {

using namespace internal::plan;

// The first of the generated instances whose optimum, by brute force, is above its lower bound.
struct Hard {
  std::vector<PackBuffer> buffers;
  std::size_t height;
  std::size_t optimum;
};
Hard find_hard(Random& random) {
  while (true) {
    Hard hard{tight_instance(random, 6, 12), 6, 6};
    while (!fits_by_force(hard.buffers, hard.optimum)) ++hard.optimum;
    if (hard.optimum > hard.height) return hard;
  }
}

Graph graph_of(const Hard& hard) {
  std::vector<LifeLine> lives;
  for (const PackBuffer& one : hard.buffers) lives.push_back({one.begin, one.end, one.bytes});
  return lives_graph(lives);
}

TEST(Proof, APlanAboveWhatIsLiveCanBeOptimal) {
  Random random(seed());
  for (std::uint64_t round = 0; round < scaled(50, 5); ++round) {
    const Hard hard = find_hard(random);
    const Plan made = plan(graph_of(hard));
    EXPECT_EQ(made.peak_bytes(), hard.optimum);
    EXPECT_EQ(made.lower_bound_bytes(), hard.optimum);
    EXPECT_EQ(made.outcome(), PlanOutcome::optimal);
    EXPECT_TRUE(plan(graph_of(hard), {.capacity_bytes = hard.optimum}).has_locations()) << "what holds the capacity is enough";
    EXPECT_EQ(plan(graph_of(hard), {.capacity_bytes = hard.optimum - 1}).outcome(), PlanOutcome::infeasible);
  }
}

TEST(Proof, ABoundThatIsNotTrueIsRefused) {
  Random random(seed());
  const Hard hard = find_hard(random);
  const auto graph = std::make_shared<const Graph>(graph_of(hard));
  PlanTables tables = plan(graph, {.strategy = "size_first"}).tables();
  tables.outcome = PlanOutcome::optimal;
  tables.arenas[0].lower_bound_bytes = tables.arenas[0].bytes + (tables.arenas[0].bytes == hard.optimum ? 1 : 0);
  EXPECT_ERROR(Plan(graph, tables), ArgumentError, ErrorCode::plan_invalid);
}

// More alignment than is needed makes every extent larger, and with it the live bytes.
TEST(Proof, ABoundByAlignmentThatNobodyNeedsIsRefused) {
  const auto graph = std::make_shared<const Graph>(lives_graph({{0, 1, 10}}));
  PlanTables tables = plan(graph).tables();
  tables.locations[0].alignment = tables.locations[0].extent_bytes = 4096;
  PlanArena& arena = tables.arenas[0];
  arena.bytes = arena.lower_bound_bytes = arena.naive_bytes = 4096;
  EXPECT_ERROR(Plan(graph, tables), ArgumentError, ErrorCode::plan_invalid);
}

TEST(Proof, ABoundNamesWhereItIsToBeSeen) {
  // a and b are live together at step 1, c at step 2.
  const Plan made = plan(lives_graph({{0, 2, 10}, {1, 2, 30}, {2, 3, 20}}));
  EXPECT_EQ(made.tables().arenas[0].proof, (BoundProof{BoundProof::By::live, {1, 2}}));
  EXPECT_NE(made.describe_bound().find("live at"), std::string::npos);
  Graph fixed = lives_graph({{0, 2, 10}, {1, 2, 30}, {2, 3, 20}});
  fixed.values[2].fixed_offset = 100;
  EXPECT_EQ(plan(fixed).tables().arenas[0].proof, (BoundProof{BoundProof::By::fixed, {2, 3}}));
  EXPECT_EQ(plan(Graph{}).tables().arenas[0].proof, (BoundProof{BoundProof::By::live, {}}));
  Random random(seed());
  const BoundProof proof = plan(graph_of(find_hard(random))).tables().arenas[0].proof;
  EXPECT_EQ(proof.by, BoundProof::By::search);
  EXPECT_LT(proof.steps.begin, proof.steps.end);
}

// A true bound is not enough: it must hold at the steps that the plan names.
TEST(Proof, ABoundWithAnotherProofIsRefused) {
  Graph plain = lives_graph({{0, 2, 10}, {1, 2, 30}, {2, 3, 20}});
  plain.values[2].fixed_offset = 8;
  const auto graph = std::make_shared<const Graph>(plain);
  const PlanTables good = plan(graph).tables();
  EXPECT_NO_THROW(Plan(graph, good));
  for (const BoundProof& wrong :
       {BoundProof{BoundProof::By::live, {2, 3}}, BoundProof{BoundProof::By::live, {0, 2}}, BoundProof{BoundProof::By::live, {2, 1}},
        BoundProof{BoundProof::By::fixed, {2, 3}}, BoundProof{BoundProof::By::fixed, {1, 2}}, BoundProof{BoundProof::By::search, {2, 3}}}) {
    PlanTables tables = good;
    tables.arenas[0].proof = wrong;
    EXPECT_ERROR(Plan(graph, tables), ArgumentError, ErrorCode::plan_invalid);
  }
  for (const BoundProof& right : {BoundProof{}, BoundProof{BoundProof::By::search, {0, 3}}, BoundProof{BoundProof::By::search, {1, 2}}}) {
    PlanTables tables = good;
    tables.arenas[0].proof = right;
    EXPECT_NO_THROW(Plan(graph, tables)) << to_string(right.by);
  }
}

TEST(Proof, ASearchOfOnePartShowsTheBoundOfAll) {
  Random random(seed());
  const Hard hard = find_hard(random);
  std::vector<LifeLine> lives;
  std::uint32_t end = 0;
  for (const PackBuffer& one : hard.buffers) {
    lives.push_back({one.begin, one.end, one.bytes});
    end = std::max(end, one.end);
  }
  // A part of its own, which needs little.
  for (std::uint32_t i = 0; i < 40; ++i) lives.push_back({end, end + 1 + i, i == 39 ? 1U : 0U});
  for (std::uint32_t i = 0; i < 40; ++i) lives.push_back({end + 50 + i, end + 52 + i, 1});
  const Plan made = plan(lives_graph(lives));
  EXPECT_EQ(made.outcome(), PlanOutcome::optimal);
  EXPECT_EQ(made.lower_bound_bytes(), hard.optimum);
  EXPECT_EQ(made.tables().arenas[0].proof, (BoundProof{BoundProof::By::search, {0, end}}));
}

// As a file of lifetimes, through the reader and every strategy.
TEST(Proof, RelabelledReversedScaledAndShiftedFilesHaveTheSamePeak) {
  for (std::uint64_t round = 0; round < scaled(20, 3); ++round) {
    Random random(seed() + round);
    std::vector<PackBuffer> lives = tight_instance(random, 20, 40);
    const auto peak_of = [&] {
      std::string file = "id,lower,upper,size\n";
      for (std::size_t i = 0; i < lives.size(); ++i)
        file += std::to_string(i) + "," + std::to_string(lives[i].begin) + "," + std::to_string(lives[i].end) + "," +
                std::to_string(lives[i].bytes) + "\n";
      return plan(read_lives_csv(file), {.strategy = "offsets"}).peak_bytes();
    };
    const std::size_t peak = peak_of();
    for (std::size_t i = lives.size(); i > 1; --i) std::swap(lives[i - 1], lives[random.below(i)]);
    EXPECT_EQ(peak_of(), peak) << "relabelled";
    for (PackBuffer& one : lives) one.begin = 1000 - std::exchange(one.end, 1000 - one.begin);
    EXPECT_EQ(peak_of(), peak) << "reversed";
    for (PackBuffer& one : lives) {
      one.bytes *= 12;
      one.begin = one.begin * 3 + 17;
      one.end = one.end * 3 + 17;
    }
    EXPECT_EQ(peak_of(), 12 * peak) << "scaled and shifted";
  }
}

TEST(Proof, WhatCannotBeCheckedIsNotBelieved) {
  std::vector<verify::LivingBuffer> many;
  for (std::uint32_t i = 0; i < 60; ++i) many.push_back({.bytes = 1 + i % 7, .begin = 0, .end = 10});
  EXPECT_FALSE(verify::surely_do_not_fit(many, 100)) << "true, and far too many ways to look at";
  EXPECT_TRUE(verify::surely_do_not_fit({{.bytes = 4, .begin = 0, .end = 2}, {.bytes = 4, .begin = 1, .end = 3}}, 7));
  EXPECT_FALSE(verify::surely_do_not_fit({{.bytes = 4, .begin = 0, .end = 2}, {.bytes = 4, .begin = 1, .end = 3}}, 8));
}

}  // namespace
}  // namespace berth::testing
