// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

#include "berth/plan/placement.h"
#include "berth/plan/read_graph.h"
#include "berth/plan/verify.h"
#include "support/errors.h"
#include "support/everything.h"

// Plans that continue plans: ranges of one graph on the same memory.
namespace berth::testing {
namespace {

// A step of training: forward (nodes 0 to 3), backward (3 to 6), update (6 to 8). a is read until the backward range
// ends, b until its first node, and `scale` only by the update.
struct Training {
  std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  ValueId x = graph->add_value({.name = "x", .bytes = 64, .external = true});
  ValueId scale = graph->add_value({.name = "scale", .bytes = 16});
  ValueId a = graph->add_value({.name = "a", .bytes = 64});
  ValueId b = graph->add_value({.name = "b", .bytes = 64});
  ValueId temporary = graph->add_value({.name = "temporary", .bytes = 96});
  ValueId loss = graph->add_value({.name = "loss", .bytes = 8, .output = true});
  ValueId db = graph->add_value({.name = "db", .bytes = 64});
  ValueId da = graph->add_value({.name = "da", .bytes = 64});
  ValueId sum = graph->add_value({.name = "sum", .bytes = 64});
  ValueId step = graph->add_value({.name = "step", .bytes = 64});
  ValueId w = graph->add_value({.name = "w", .bytes = 64, .output = true});

  Training() {
    graph->add_node({.name = "n0", .inputs = {x}, .outputs = {scale, a}});
    graph->add_node({.name = "n1", .inputs = {a}, .outputs = {b, temporary}});
    graph->add_node({.name = "n2", .inputs = {b, temporary}, .outputs = {loss}});
    graph->add_node({.name = "n3", .inputs = {b}, .outputs = {db}, .inplace = {{}}});
    graph->add_node({.name = "n4", .inputs = {db}, .outputs = {da}});
    graph->add_node({.name = "n5", .inputs = {da, a}, .outputs = {sum}});
    graph->add_node({.name = "n6", .inputs = {sum, scale}, .outputs = {step}});
    graph->add_node({.name = "n7", .inputs = {step}, .outputs = {w}});
  }

  Plan make(NodeRange nodes, const Plan* after = nullptr, const char* strategy = "offsets") const {
    return plan(graph, {.strategy = strategy, .nodes = nodes, .after = after});
  }
};

class Ranges : public ::testing::TestWithParam<const char*>, protected Training {
 protected:
  const Plan forward = make({0, 3}, nullptr, GetParam());
  const Plan backward = make({3, 6}, &forward, GetParam());
  const Plan update = make({6, 8}, &backward, GetParam());
  const std::vector<Plan> all = {forward, backward, update};
};

INSTANTIATE_TEST_SUITE_P(Strategies, Ranges, ::testing::Values("offsets", "slots", "slots_plain", "best", "size_best"));

TEST_P(Ranges, KeepWhatLivesOnWhereItLies) {
  for (const ValueId v : {a, b, scale, loss}) {
    EXPECT_EQ(backward.location(v).reuse, Reuse::kept);
    EXPECT_EQ(backward.location(v).offset, forward.location(v).offset);
    EXPECT_EQ(backward.location(v).slot, forward.location(v).slot);
  }
  EXPECT_EQ(backward.location(temporary).reason, UnplannedReason::outside_range) << "nobody needs it any more";
  EXPECT_EQ(backward.life(b), (NodeRange{3, 4}));
  EXPECT_EQ(backward.life(a), (NodeRange{3, 6}));
  EXPECT_EQ(backward.life(scale), (NodeRange{3, 6})) << "nobody reads it here; it is for the update";
}

TEST_P(Ranges, KeepWhatTheRangeBeforeOnlyKept) {
  EXPECT_EQ(update.location(scale).reuse, Reuse::kept);
  EXPECT_EQ(update.location(scale).offset, forward.location(scale).offset);
  EXPECT_EQ(update.location(a).reason, UnplannedReason::outside_range);
}

TEST_P(Ranges, TakeInPlaceWhatDiesThere) {
  EXPECT_EQ(backward.location(db).reuse, Reuse::in_place);
  EXPECT_EQ(backward.location(db).with, b);
  EXPECT_EQ(backward.location(db).offset, forward.location(b).offset);
}

TEST_P(Ranges, AreRightTogether) {
  EXPECT_TRUE(verify_plans(all).empty());
  const std::vector<Placement> memory = place(all);
  const ShadowReport report = shadow_run(memory);
  EXPECT_TRUE(report.ok()) << report.wrong.front();
  EXPECT_EQ(report.nodes, 8U);
  EXPECT_TRUE(memory[0].arena(0) == memory[2].arena(0)) << "the same memory";
  EXPECT_EQ(memory[0][a].data_ptr(), memory[1][a].data_ptr());
}

TEST_P(Ranges, AreReadFromFilesAloneAndVerifiedTogether) {
  std::vector<Plan> read;
  for (const Plan& one : all) read.push_back(read_plan_json(to_json(PlanFile{one})));
  EXPECT_EQ(read[1].tables(), backward.tables());
  EXPECT_EQ(read[1].life(scale), backward.life(scale));
  EXPECT_EQ(read[1].buffers().size(), backward.buffers().size());
  EXPECT_TRUE(verify_plans(read).empty());
  EXPECT_TRUE(verify_plans(std::span(read).subspan(1)).empty()) << "what the first keeps is as it says";
}

TEST(Ranges, WithoutNodesPlanTheRest) {
  const Training net;
  const Plan forward = net.make({0, 3});
  EXPECT_EQ(plan(net.graph, {.after = &forward}).tables().nodes, (NodeRange{3, 8}));
}

TEST(Ranges, ThatDoNotContinueOneAnotherAreCaught) {
  const Training net;
  const Plan forward = net.make({0, 3});
  const Plan backward = net.make({3, 6});  // not after it
  const std::vector<PlanProblem> problems = verify_plans(std::vector{forward, backward});
  ASSERT_FALSE(problems.empty());
  EXPECT_NE(problems[0].text.find("lives on from nodes 0 to 3"), std::string::npos) << problems[0].text;
  const std::vector<Placement> memory = place(std::vector{forward, backward});
  EXPECT_TRUE(shadow_run(memory[1]).ok()) << "alone it is right";
  const ShadowReport report = shadow_run(memory);
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.wrong[0].find("reads value"), std::string::npos) << report.wrong[0];
  EXPECT_TRUE(shadow_run(std::vector{place(forward), place(backward)}).ok()) << "on memory of its own";
}

TEST(Ranges, OfOffsetsFollowThoseOfSlotsAndTheOtherWayRound) {
  const Training net;
  for (const auto& [first, second] : {std::pair("slots", "offsets"), std::pair("offsets", "slots")}) {
    const Plan forward = net.make({0, 3}, nullptr, first);
    const Plan rest = net.make({3, 8}, &forward, second);
    EXPECT_TRUE(verify_plans(std::vector{forward, rest}).empty()) << second;
    EXPECT_EQ(rest.tables().slots.empty(), std::string(second) == "offsets");
  }
}

TEST(Ranges, LeaveTheSlotsOfKeptValuesAsTheyAre) {
  const Training net;
  const Plan forward = net.make({0, 3}, nullptr, "slots");
  const Plan rest = net.make({3, 8}, &forward, "slots");
  ASSERT_GE(rest.tables().slots.size(), forward.tables().slots.size());
  for (std::uint32_t i = 0; i < forward.tables().slots.size(); ++i)
    EXPECT_GE(rest.tables().slots[i].bytes, forward.tables().slots[i].bytes);
  for (const ValueId v : {net.a, net.scale}) {
    const std::uint32_t slot = forward.location(v).slot;
    EXPECT_EQ(rest.tables().slots[slot], forward.tables().slots[slot]);
  }
}

TEST(Ranges, KeepViewsWithTheirWholes) {
  auto graph = std::make_shared<Graph>();
  const ValueId whole = graph->add_value({.name = "whole", .bytes = 64});
  const ValueId part = graph->add_value({.name = "part", .bytes = 32});
  const ValueId y = graph->add_value({.name = "y", .bytes = 64, .output = true});
  const ValueId z = graph->add_value({.name = "z", .bytes = 32, .output = true});
  graph->add_node({.outputs = {whole}});
  graph->add_node({.inputs = {whole}, .outputs = {part}, .views = {{.offset_bytes = 32}}});
  graph->add_node({.inputs = {whole}, .outputs = {y}, .inplace = {{}}});
  graph->add_node({.inputs = {part}, .outputs = {z}, .inplace = {{}}});
  const Plan first = plan(graph, {.nodes = NodeRange{0, 2}});
  ASSERT_EQ(first.location(part).reuse, Reuse::view);
  const Plan second = plan(graph, {.after = &first});
  EXPECT_EQ(second.location(whole).buffer, second.location(part).buffer);
  EXPECT_EQ(second.location(y).reuse, Reuse::own) << "the view is still needed";
  EXPECT_TRUE(verify_plans(std::vector{first, second}).empty());
  EXPECT_TRUE(shadow_run(place(std::vector{first, second})).ok());
}

TEST(Ranges, AViewWhosePaddingIsNotKeptHasBytesOfItsOwn) {
  Graph graph;
  const ValueId whole = graph.add_value({.name = "whole", .bytes = 24});
  const ValueId part = graph.add_value({.name = "part", .bytes = 16, .alignment = 64});
  graph.add_node({.outputs = {whole}});
  graph.add_node({.inputs = {whole}, .outputs = {part}, .views = {{}}});
  graph.add_node({.inputs = {part}});
  EXPECT_EQ(plan(graph).location(part).reuse, Reuse::view) << "one buffer of 64 bytes";
  for (const char* strategy : {"offsets", "slots"}) {
    const Plan first = plan(graph, {.strategy = strategy, .nodes = NodeRange{0, 1}});
    const Plan second = plan(graph, {.strategy = strategy, .after = &first});
    EXPECT_EQ(second.location(part).reuse, Reuse::own) << "of the whole only 24 bytes are kept";
    EXPECT_TRUE(shadow_run(place(second)).ok());
  }
}

TEST(Ranges, AreForNodesInOrder) {
  const Training net;
  const Plan forward = net.make({0, 3});
  EXPECT_THROW(plan(net.graph, {.parallel = 2, .after = &forward}), ArgumentError);
}

TEST(Ranges, PastTheCapacityAreInfeasible) {
  const Training net;
  const Plan forward = net.make({0, 3});
  const Plan rest = plan(net.graph, {.capacity_bytes = 200, .after = &forward});
  EXPECT_EQ(rest.outcome(), PlanOutcome::infeasible);
  EXPECT_EQ(rest.location(net.a).reason, UnplannedReason::outside_range);
}

TEST(Ranges, ASurvivorIsPackedAtTheBottom) {
  // Alone, the large ones would come first: then `next` would fit neither below what survives nor beside it.
  auto graph = std::make_shared<Graph>();
  const ValueId first_large = graph->add_value({.name = "first large", .bytes = 100});
  const ValueId second_large = graph->add_value({.name = "second large", .bytes = 100});
  const ValueId small = graph->add_value({.name = "small", .bytes = 10});
  const ValueId next = graph->add_value({.name = "next", .bytes = 105, .output = true});
  graph->add_node({.outputs = {first_large}});
  graph->add_node({.inputs = {first_large}, .outputs = {small}});
  graph->add_node({.outputs = {second_large}});
  graph->add_node({.inputs = {small}, .outputs = {next}});
  const Plan first = plan(graph, {.strategy = "size_best", .nodes = NodeRange{0, 3}});
  EXPECT_EQ(first.peak_bytes(), 110U);
  EXPECT_EQ(first.location(small).offset, 0U);
  EXPECT_EQ(plan(graph, {.after = &first}).peak_bytes(), 115U);
}

TEST(Ranges, AreRefusedWhereTheyDoNotFitTogether) {
  const Training net;
  const Plan forward = net.make({0, 3});
  const auto expect_refused = [&](const PlanOptions& options, const Graph& graph) {
    EXPECT_THROW((void)plan(graph, options), ArgumentError);
  };
  expect_refused({.nodes = NodeRange{2, 6}, .after = &forward}, *net.graph);
  expect_refused({.nodes = NodeRange{4, 4}, .after = &forward}, *net.graph);
  expect_refused({.after = &forward, .slots = {PlanSlot{}}, .slots_are_free = true}, *net.graph);
  expect_refused({.max_chunk_bytes = 128, .after = &forward}, *net.graph);
  Graph other = *net.graph;
  other.values[net.a].bytes = 65;
  expect_refused({.after = &forward}, other);
  const Plan none = plan(net.graph, {.capacity_bytes = 1, .nodes = NodeRange{0, 3}});
  expect_refused({.after = &none}, *net.graph);
}

TEST(Ranges, ArePlacedOnTheMemoryOfAnEarlierOne) {
  const Training net;
  const Plan forward = net.make({0, 3});
  const Plan backward = net.make({3, 6}, &forward);
  const Placement first = place(forward);
  ASSERT_LE(backward.peak_bytes(), forward.peak_bytes());
  const Placement second = place(backward, first);
  EXPECT_TRUE(second.arena(0) == first.arena(0));
  EXPECT_TRUE(shadow_run(std::vector{first, second}).ok());
  const Plan larger = plan(net.graph, {.alignment = 128, .after = &forward});
  ASSERT_GT(larger.peak_bytes(), forward.peak_bytes());
  EXPECT_ERROR(place(larger, first), ArgumentError, ErrorCode::limit_exceeded);
  EXPECT_TRUE(shadow_run(place(std::vector{forward, larger})).ok());
}

// ---- Tables that lie about what they keep.

void expect_caught(const Training& net, PlanProblem::Kind kind, const std::function<void(PlanTables&)>& change) {
  const Plan forward = net.make({0, 3});
  PlanTables tables = net.make({3, 6}, &forward).tables();
  ASSERT_TRUE(verify_plan(*net.graph, tables).empty());
  change(tables);
  const std::vector<PlanProblem> problems = verify_plan(*net.graph, tables);
  ASSERT_FALSE(problems.empty());
  EXPECT_EQ(to_string(problems.front().kind), to_string(kind)) << problems.front().text;
}

TEST(Ranges, AVerifierCatchesWrongClaims) {
  using Kind = PlanProblem::Kind;
  const Training net;
  expect_caught(net, Kind::shape, [&](PlanTables& t) { t.locations[net.da].reuse = Reuse::kept; });
  expect_caught(net, Kind::shape, [&](PlanTables& t) { t.locations[net.temporary] = t.locations[net.a]; });
  expect_caught(net, Kind::shape, [&](PlanTables& t) { t.locations[net.w] = t.locations[net.a]; });
  expect_caught(net, Kind::shape, [&](PlanTables& t) { t.locations[net.x] = t.locations[net.a]; });
  expect_caught(net, Kind::shape, [&](PlanTables& t) { t.locations[net.a].reuse = Reuse::own; });
  expect_caught(net, Kind::alignment, [&](PlanTables& t) { t.locations[net.a].alignment = 3; });
  expect_caught(net, Kind::alignment, [&](PlanTables& t) { t.locations[net.a].extent_bytes += 1; });
  expect_caught(net, Kind::bounds, [&](PlanTables& t) { t.locations[net.a].offset = 1 << 20; });
  expect_caught(net, Kind::overlap, [&](PlanTables& t) { t.locations[net.da].offset = t.locations[net.a].offset; });
  expect_caught(net, Kind::totals, [&](PlanTables& t) { t.arenas[0].naive_bytes -= 64; });
}

TEST(Ranges, AVerifierCatchesWhatWasMovedInBetween) {
  const Training net;
  const Plan forward = net.make({0, 3});
  const Plan backward = net.make({3, 6}, &forward);
  PlanTables tables = forward.tables();
  std::swap(tables.locations[net.a].offset, tables.locations[net.b].offset);  // right alone: they are alike
  const Plan swapped(net.graph, tables);
  const std::vector<PlanProblem> problems = verify_plans(std::vector{swapped, backward});
  ASSERT_FALSE(problems.empty());
  EXPECT_NE(problems[0].text.find("the next plan looks for it"), std::string::npos) << problems[0].text;
  EXPECT_FALSE(verify_plans(std::vector{backward, forward}).empty()) << "in the wrong order";
  EXPECT_FALSE(verify_plans(std::vector{forward, forward}).empty()) << "twice";
  const Plan other_graph = plan(Graph(*net.graph), {.nodes = NodeRange{3, 6}, .after = &forward});
  EXPECT_TRUE(verify_plans(std::vector{forward, other_graph}).empty()) << "an equal graph";
}

}  // namespace
}  // namespace berth::testing
