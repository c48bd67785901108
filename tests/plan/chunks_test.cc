// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "plan/lives_graph.h"
#include "plan/random_graph.h"
#include "support/errors.h"
#include "support/everything.h"
#include "support/scale.h"

// Several arenas with capacities, the preferred one first, and chunks no larger than a maximum.
namespace berth::testing {

using namespace internal::base;

namespace {

TEST(Chunks, NoneIsLargerThanTheMaximum) {
  const Graph graph = lives_graph({{0, 3, 60}, {0, 3, 50}, {0, 3, 40}, {1, 2, 30}});
  const Plan made = plan(graph, {.max_chunk_bytes = 100});
  ASSERT_EQ(made.tables().chunks.size(), 2U);
  for (const PlanChunk& chunk : made.tables().chunks) EXPECT_LE(chunk.bytes, 100U);
  EXPECT_EQ(made.peak_bytes(), 180U);
  EXPECT_EQ(made.outcome(), PlanOutcome::optimal);
}

TEST(Chunks, WhatFitsIntoOneIsOne) {
  const Graph graph = lives_graph({{0, 2, 10}, {1, 3, 20}, {2, 4, 10}});
  const Plan made = plan(graph, {.max_chunk_bytes = 30});
  ASSERT_EQ(made.tables().chunks.size(), 1U);
  EXPECT_EQ(made.peak_bytes(), 30U);
}

TEST(Chunks, AValueLargerThanTheMaximumDoesNotFit) {
  const Graph graph = lives_graph({{0, 2, 10}, {1, 3, 40}});
  EXPECT_EQ(plan(graph, {.max_chunk_bytes = 39}).outcome(), PlanOutcome::infeasible);
  EXPECT_TRUE(plan(graph, {.max_chunk_bytes = 40}).has_locations());
}

TEST(Chunks, ThePreferredArenaHoldsWhatIsUsedMost) {
  Graph graph;
  const ValueId idle = graph.add_value({.name = "idle", .bytes = 100});
  const ValueId busy = graph.add_value({.name = "busy", .bytes = 100});
  graph.add_node({.outputs = {idle}});
  graph.add_node({.outputs = {busy}});
  for (int i = 0; i < 5; ++i) graph.add_node({.inputs = {busy}, .outputs = {graph.add_value({.bytes = 1})}});
  graph.add_node({.inputs = {idle}, .outputs = {graph.add_value({.bytes = 1})}});
  const Plan made = plan(graph, {.arenas = {{.name = "fast", .capacity_bytes = 110}, {.name = "slow"}}});
  ASSERT_EQ(made.tables().chunks.size(), 2U);
  const PlanChunk& fast = made.tables().chunks[0];
  EXPECT_EQ(fast.name, "fast");
  EXPECT_LE(fast.bytes, 110U);
  EXPECT_EQ(made.tables().chunks[1].name, "slow");
  EXPECT_LT(made.location(busy).offset, fast.bytes);
  EXPECT_GE(made.location(idle).offset, made.tables().chunks[1].offset);
}

TEST(Chunks, EverythingFitsIntoFastMemoryWhenItIsLargeEnough) {
  const Graph graph = lives_graph({{0, 2, 10}, {1, 3, 20}, {2, 4, 10}});
  const Plan made = plan(graph, {.arenas = {{.name = "fast", .capacity_bytes = 64}, {.name = "slow"}}});
  ASSERT_EQ(made.tables().chunks.size(), 1U);
  EXPECT_EQ(made.tables().chunks[0].name, "fast");
}

TEST(Chunks, WhatAllArenasCannotHoldIsInfeasible) {
  const Graph graph = lives_graph({{0, 2, 10}, {1, 3, 20}, {2, 4, 10}});
  EXPECT_EQ(plan(graph, {.arenas = {{"a", 10}, {"b", 10}}}).outcome(), PlanOutcome::infeasible);
  EXPECT_TRUE(plan(graph, {.arenas = {{"a", 20}, {"b", 10}}}).has_locations());
}

// Orders look at every buffer of a bin for each that they place: of very many, and in a short time, a sweep is enough.
TEST(Chunks, AreFoundByASweepWhereOrdersHaveNoTime) {
  Random random(seed());
  std::vector<LifeLine> lives;
  for (std::uint32_t i = 0; i < 3000; ++i)
    lives.push_back({i, i + 1 + static_cast<std::uint32_t>(random.below(50)), 1 + random.below(100)});
  const Graph graph = lives_graph(lives);
  const Plan made = plan(graph, {.max_chunk_bytes = 1000, .time_limit = std::chrono::seconds(0)});
  ASSERT_TRUE(made.has_locations());
  EXPECT_GT(made.tables().chunks.size(), 1U);
  EXPECT_LE(made.peak_bytes(), 2 * made.lower_bound_bytes());
  const Plan two = plan(graph, {.arenas = {{"fast", 500}, {"slow"}}, .time_limit = std::chrono::seconds(0)});
  ASSERT_EQ(two.tables().chunks.size(), 2U);
  EXPECT_LE(two.tables().chunks[0].bytes, 500U);
}

TEST(Chunks, AreOfferedFixedOffsetsAndSlotsInVain) {
  Graph graph = lives_graph({{0, 2, 10}, {1, 3, 20}});
  PlanOptions options{.strategy = "slots", .max_chunk_bytes = 100};
  EXPECT_ERROR((void)plan(graph, options), ArgumentError, ErrorCode::invalid_argument);
  options = {.arenas = {{"a"}, {"a"}}};
  EXPECT_ERROR((void)plan(graph, options), ArgumentError, ErrorCode::invalid_argument);
  options = {.arenas = {{"a", 100, 7}}};
  EXPECT_ERROR((void)plan(graph, options), ArgumentError, ErrorCode::out_of_bounds);
  options = {.max_chunk_bytes = 0};
  EXPECT_ERROR((void)plan(graph, options), ArgumentError, ErrorCode::invalid_argument);
  graph.values[0].fixed_offset = 8;
  options = {.max_chunk_bytes = 100};
  EXPECT_ERROR((void)plan(graph, options), ArgumentError, ErrorCode::invalid_argument);
}

TEST(Chunks, ArePlacedEachInMemoryOfItsOwn) {
  const Graph graph = lives_graph({{0, 3, 60}, {0, 3, 50}, {0, 3, 40}, {1, 2, 30}});
  const Plan made = plan(graph, {.alignment = 16, .arenas = {{"fast", 64}, {"slow"}}});
  const auto counted = track(direct("cpu"));
  const Placement memory = place(made, {{"fast", counted}});
  EXPECT_FALSE(memory.arena(0)) << "it has chunks";
  EXPECT_EQ(counted->stats().live_blocks, 1U) << "the fast one alone";
  ASSERT_TRUE(memory.chunk(0));
  ASSERT_TRUE(memory.chunk(1));
  EXPECT_NE(memory.chunk(0).data(), memory.chunk(1).data());
  EXPECT_EQ(memory.spot(0).buffer.size_bytes() >= 60, true);
  EXPECT_ERROR((void)memory.chunk(2), ArgumentError, ErrorCode::out_of_bounds);
  EXPECT_TRUE(shadow_run(memory).ok());
}

TEST(Chunks, MoveWithTheirContents) {
  const Graph graph = lives_graph({{0, 3, 60}, {0, 3, 50}, {0, 3, 40}});
  Placement memory = place(plan(graph, {.max_chunk_bytes = 100}));
  const auto first_byte = [&] { return static_cast<char*>(memory.spot(2).buffer.data()) + memory.spot(2).offset; };
  *first_byte() = 'x';
  memory.move(0, direct("cpu"));
  EXPECT_EQ(*first_byte(), 'x');
  const Storage out = memory[1];
  EXPECT_ERROR(memory.move(0, direct("cpu")), AccessError, ErrorCode::busy);
}

TEST(Chunks, AreWrittenAndReadWithThePlan) {
  const Graph graph = lives_graph({{0, 3, 60}, {0, 3, 50}, {0, 3, 40}, {1, 2, 30}});
  const Plan made = plan(graph, {.arenas = {{"fast", 64}, {"slow"}}, .max_chunk_bytes = 90});
  EXPECT_EQ(read_plan_json(to_json(PlanFile{made})).tables(), made.tables());
}

TEST(RandomChunks, AreVerifiedAndRun) {
  Random random(seed());
  const std::uint64_t runs = scaled(20'000, 300);
  std::uint64_t several = 0;
  for (std::uint64_t i = 0; i < runs; ++i) {
    const Graph graph = random_graph(random, 24);
    PlanOptions options;
    if (random.one_in(2)) options.max_chunk_bytes = 100 + random.below(200);
    if (random.one_in(2)) options.arenas = {{"fast", 32 + random.below(200)}, {"slow"}};
    if (random.one_in(4)) options.alignment = std::size_t{1} << random.below(7);
    const Plan made = plan(graph, options);
    if (!made.has_locations()) continue;
    for (const PlanChunk& chunk : made.tables().chunks) ASSERT_LE(chunk.bytes, std::min(options.max_chunk_bytes, chunk.capacity_bytes));
    several += made.tables().chunks.size() > graph.devices.size();
    if (i % 8 != 0) continue;
    ASSERT_EQ(plan(graph, options).tables(), made.tables()) << "run " << i;
    const ShadowReport report = shadow_run(place(made));
    ASSERT_TRUE(report.ok()) << "run " << i << ": " << report.wrong.front();
  }
  EXPECT_GT(several, runs / 20);
  did(std::to_string(runs) + " graphs, " + std::to_string(several) + " in several chunks");
}

// ---- The verifier, on chunks with one known error.

void expect_chunks_caught(PlanProblem::Kind kind, const std::function<void(PlanTables&)>& change) {
  const Graph graph = lives_graph({{0, 3, 60}, {0, 3, 50}, {0, 3, 40}, {1, 2, 30}});
  PlanTables tables = plan(graph, {.max_chunk_bytes = 100}).tables();
  ASSERT_TRUE(verify_plan(graph, tables).empty());
  change(tables);
  const std::vector<PlanProblem> problems = verify_plan(graph, tables);
  ASSERT_FALSE(problems.empty());
  EXPECT_EQ(to_string(problems.front().kind), to_string(kind)) << problems.front().text;
}

TEST(PlantedChunks, AreCaught) {
  using Kind = PlanProblem::Kind;
  expect_chunks_caught(Kind::bounds, [](PlanTables& t) { t.chunks[0].capacity_bytes = t.chunks[0].bytes - 1; });
  expect_chunks_caught(Kind::bounds, [](PlanTables& t) { t.chunks[1].bytes += 1; });
  expect_chunks_caught(Kind::bounds, [](PlanTables& t) { t.chunks[1].device = 4; });
  expect_chunks_caught(Kind::bounds, [](PlanTables& t) { t.chunks.pop_back(); });
  expect_chunks_caught(Kind::bounds, [](PlanTables& t) { t.chunks[0].bytes -= 1; });
  expect_chunks_caught(Kind::overlap, [](PlanTables& t) { t.chunks[1].offset -= 1; });
  expect_chunks_caught(Kind::overlap, [](PlanTables& t) { std::swap(t.chunks[0], t.chunks[1]); });
  expect_chunks_caught(Kind::bounds, [](PlanTables& t) {  // a boundary inside a value
    t.chunks[0].bytes -= 10;
    t.chunks[1].offset -= 10;
    t.chunks[1].bytes += 10;
  });
  expect_chunks_caught(Kind::shape, [](PlanTables& t) {  // slots and chunks
    t.slots.push_back({0, t.arenas[0].bytes, 0});
    for (ValueLocation& location : t.locations) location.slot = 0;
  });
}

}  // namespace
}  // namespace berth::testing
