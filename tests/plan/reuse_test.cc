// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>

#include "berth/plan/plan.h"
#include "support/errors.h"

// Which values reuse bytes: each rule by itself, in a graph where breaking it would be wrong.
namespace berth::testing {
namespace {

using Inplace = Plan::Inplace;

// n0 writes x, n1 reads x and may write y over it.
struct Pair {
  Graph graph;
  ValueId x = graph.add_value({.name = "x", .bytes = 64});
  ValueId y = graph.add_value({.name = "y", .bytes = 64, .output = true});

  Pair() {
    graph.add_node({.name = "n0", .outputs = {x}});
    graph.add_node({.name = "n1", .inputs = {x}, .outputs = {y}, .inplace = {{}}});
  }
  GraphNode& second() { return graph.nodes[1]; }
  Reuse reuse() const { return plan(graph).location(y).reuse; }
};

TEST(Reuse, TakesAnInputThatDies) {
  Pair pair;
  const Plan made = plan(pair.graph);
  EXPECT_EQ(made.location(pair.y).reuse, Reuse::in_place);
  EXPECT_EQ(made.inplace_of(pair.y).kind, Inplace::taken);
  EXPECT_EQ(made.inplace_of(pair.y).input, 0U);
  EXPECT_EQ(made.inplace_of(pair.x).kind, Inplace::none);
  EXPECT_EQ(made.peak_bytes(), 64U);
  EXPECT_EQ(plan(pair.graph, {.inplace = false}).peak_bytes(), 128U);
}

TEST(Reuse, LeavesAnInputThatIsReadLater) {
  Pair pair;
  pair.graph.add_node({.name = "n2", .inputs = {pair.x}});
  EXPECT_EQ(pair.reuse(), Reuse::own);
}

TEST(Reuse, LeavesAnInputThatMustSurvive) {
  Pair pair;
  pair.graph.values[pair.x].output = true;
  EXPECT_EQ(pair.reuse(), Reuse::own);
}

TEST(Reuse, LeavesWhatIsNotOurs) {
  Pair external;
  external.graph.values[external.x].external = true;
  EXPECT_EQ(external.reuse(), Reuse::own);
  Pair dynamic;
  dynamic.graph.values[dynamic.x].dynamic = true;
  EXPECT_EQ(dynamic.reuse(), Reuse::own);
  Pair unknown;
  unknown.graph.values[unknown.x].bytes = {};
  EXPECT_EQ(unknown.reuse(), Reuse::own);
}

TEST(Reuse, LeavesAnotherDevice) {
  Pair pair;
  pair.graph.values[pair.y].device = pair.graph.add_device("sim:0");
  EXPECT_EQ(pair.reuse(), Reuse::own);
}

TEST(Reuse, LeavesWhatIsTooSmallOrOfAnotherWidth) {
  Pair small;
  small.graph.values[small.y].bytes = 65;
  EXPECT_EQ(small.reuse(), Reuse::own);
  Pair width;
  width.graph.values[width.x] = {.name = "x", .dtype = DType::f32, .shape = Shape{16}};
  width.graph.values[width.y] = {.name = "y", .dtype = DType::f16, .shape = Shape{16}, .output = true};
  EXPECT_EQ(width.reuse(), Reuse::own);
  width.graph.values[width.y].dtype = DType::i32;
  EXPECT_EQ(width.reuse(), Reuse::in_place) << "equal widths are enough";
}

TEST(Reuse, AnUnusedOutputTakesNothingAndIsFreedAtOnce) {
  Pair pair;
  pair.graph.values[pair.y].output = false;
  const Plan made = plan(pair.graph);
  EXPECT_EQ(made.location(pair.y).reuse, Reuse::own);
  EXPECT_EQ(made.inplace_of(pair.y).kind, Inplace::unused);
  EXPECT_EQ(made.life(pair.y), (NodeRange{1, 2}));
}

TEST(Reuse, OneInputIsTakenOnce) {
  Pair pair;
  const ValueId z = pair.graph.add_value({.name = "z", .bytes = 64, .output = true});
  pair.second().outputs.push_back(z);
  pair.second().inplace.push_back({.output = 1, .input = 0});
  const Plan made = plan(pair.graph);
  EXPECT_EQ(made.location(pair.y).reuse, Reuse::in_place);
  EXPECT_EQ(made.location(z).reuse, Reuse::own);
}

TEST(Reuse, ANodeThatReadsItTwiceKeepsIt) {
  Pair pair;
  pair.second().inputs.push_back(pair.x);
  EXPECT_EQ(pair.reuse(), Reuse::own);
  pair.second().ignored_inputs = {1};
  EXPECT_EQ(pair.reuse(), Reuse::in_place) << "an ignored input is not read";
}

TEST(Reuse, NothingIsTakenWhereAllInputsAreIgnored) {
  Pair pair;
  pair.second().ignored_inputs = {0};
  EXPECT_EQ(pair.reuse(), Reuse::own);
}

TEST(Reuse, AnIgnoredInputDiesEarlier) {
  Pair pair;
  pair.graph.add_node({.name = "n2", .inputs = {pair.x}, .ignored_inputs = {0}});
  EXPECT_EQ(pair.reuse(), Reuse::in_place);
}

TEST(Reuse, AnIdentityHasOtherReaders) {
  Pair pair;
  pair.second().inplace[0].identity = true;
  pair.graph.add_node({.name = "n2", .inputs = {pair.x}});
  const Plan made = plan(pair.graph);
  EXPECT_EQ(made.location(pair.y).reuse, Reuse::identity);
  EXPECT_EQ(made.location(pair.y).offset, made.location(pair.x).offset);
  EXPECT_EQ(made.peak_bytes(), 64U);
}

TEST(Reuse, AnIdentityOfAnotherSizeOrDTypeIsNone) {
  Pair pair;
  pair.second().inplace[0].identity = true;
  pair.graph.add_node({.name = "n2", .inputs = {pair.x}});
  pair.graph.values[pair.y].bytes = 32;
  EXPECT_EQ(pair.reuse(), Reuse::own);
  pair.graph.values[pair.y] = {.name = "y", .dtype = DType::f32, .shape = Shape{16}, .output = true};
  EXPECT_EQ(pair.reuse(), Reuse::own);
}

// x → (identity) y → z in place: z would overwrite x, which is read after it.
TEST(Reuse, AChainOfAliasesLivesAsLongAsAllOfIt) {
  Pair pair;
  pair.second().inplace[0].identity = true;
  pair.graph.values[pair.y].output = false;
  const ValueId z = pair.graph.add_value({.name = "z", .bytes = 64, .output = true});
  pair.graph.add_node({.name = "n2", .inputs = {pair.y}, .outputs = {z}, .inplace = {{}}});
  EXPECT_EQ(plan(pair.graph).location(z).reuse, Reuse::in_place);
  pair.graph.add_node({.name = "n3", .inputs = {pair.x}});
  const Plan made = plan(pair.graph);
  EXPECT_EQ(made.location(z).reuse, Reuse::own);
  EXPECT_EQ(made.location(pair.y).reuse, Reuse::identity);
}

// The halves of x, one of which outlives it.
TEST(Reuse, ASplitCopiesNothing) {
  Graph graph;
  const ValueId x = graph.add_value({.name = "x", .bytes = 128});
  const ValueId a = graph.add_value({.name = "a", .bytes = 64, .output = true});
  const ValueId b = graph.add_value({.name = "b", .bytes = 64});
  const ValueId c = graph.add_value({.name = "c", .bytes = 64, .output = true});
  graph.add_node({.outputs = {x}});
  graph.add_node({.inputs = {x}, .outputs = {a, b}, .views = {{.output = 0, .offset_bytes = 0}, {.output = 1, .offset_bytes = 64}}});
  graph.add_node({.inputs = {b}, .outputs = {c}, .inplace = {{}}});
  const Plan made = plan(graph);
  EXPECT_EQ(made.location(a).reuse, Reuse::view);
  EXPECT_EQ(made.location(b).offset, made.location(x).offset + 64);
  EXPECT_EQ(made.location(c).reuse, Reuse::own) << "a view of a larger buffer is not taken";
  EXPECT_EQ(made.peak_bytes(), 192U);
}

TEST(Reuse, AJoinWritesItsInputsWhereTheyGo) {
  Graph graph;
  const ValueId a = graph.add_value({.name = "a", .bytes = 64});
  const ValueId b = graph.add_value({.name = "b", .bytes = 64});
  const ValueId whole = graph.add_value({.name = "whole", .bytes = 128, .output = true});
  graph.add_node({.outputs = {a}});
  graph.add_node({.outputs = {b}});
  graph.add_node({.inputs = {a, b},
                  .outputs = {whole},
                  .views = {{.input = 0, .offset_bytes = 0, .of_input = false}, {.input = 1, .offset_bytes = 64, .of_input = false}}});
  const Plan made = plan(graph);
  EXPECT_EQ(made.location(whole).reuse, Reuse::joined);
  EXPECT_EQ(made.location(b).offset, made.location(whole).offset + 64);
  EXPECT_EQ(made.peak_bytes(), 128U);
  EXPECT_EQ(made.buffers().size(), 1U);
  EXPECT_EQ(plan(graph, {.inplace = false}).peak_bytes(), 256U);
}

TEST(Reuse, AJoinMayHoldAViewOfWhatItHolds) {
  Graph graph;
  const ValueId a = graph.add_value({.name = "a", .bytes = 8});
  const ValueId b = graph.add_value({.name = "b", .bytes = 8});
  const ValueId c = graph.add_value({.name = "c", .bytes = 8});
  const ValueId view = graph.add_value({.name = "view", .bytes = 4});
  const ValueId whole = graph.add_value({.name = "whole", .bytes = 64});
  graph.add_node({.outputs = {a}});
  graph.add_node({.inputs = {a}, .outputs = {b}, .views = {{.of_input = false}}});
  graph.add_node({.inputs = {a, b}, .outputs = {c, view}, .views = {{.input = 1, .of_input = false}, {.output = 1}}});
  graph.add_node({.inputs = {view, c},
                  .outputs = {whole},
                  .views = {{.offset_bytes = 40, .of_input = false}, {.input = 1, .offset_bytes = 40, .of_input = false}}});
  graph.add_node({.inputs = {whole}});
  // The view is padded to the bytes of its whole, and what is there is the whole's.
  const Plan made = plan(graph, {.alignment = 8});
  EXPECT_EQ(made.location(whole).reuse, Reuse::joined);
  EXPECT_EQ(made.location(view).offset, made.location(c).offset);
  EXPECT_TRUE(shadow_run(place(made)).ok());
}

// The whole would be live from the first part on: while something large is live, that makes the plan larger,
// not smaller.
TEST(Reuse, AJoinThatCostsMemoryIsNotTaken) {
  Graph graph;
  const ValueId a = graph.add_value({.name = "a", .bytes = 8});
  const ValueId large = graph.add_value({.name = "large", .bytes = 1000});
  const ValueId b = graph.add_value({.name = "b", .bytes = 500});
  const ValueId whole = graph.add_value({.name = "whole", .bytes = 508, .output = true});
  graph.add_node({.outputs = {a}});
  graph.add_node({.outputs = {large}});
  graph.add_node({.inputs = {large}});
  graph.add_node({.outputs = {b}});
  graph.add_node({.inputs = {a, b},
                  .outputs = {whole},
                  .views = {{.input = 0, .offset_bytes = 0, .of_input = false}, {.input = 1, .offset_bytes = 8, .of_input = false}}});
  const Plan made = plan(graph);
  EXPECT_EQ(made.location(whole).reuse, Reuse::own);
  EXPECT_EQ(made.peak_bytes(), 1016U) << "a, b and the whole at the last node";
}

// A small view would keep a large input alive.
TEST(Reuse, AViewThatCostsMemoryIsNotTaken) {
  Graph graph;
  const ValueId x = graph.add_value({.name = "x", .bytes = 1000});
  const ValueId part = graph.add_value({.name = "part", .bytes = 8, .output = true});
  const ValueId large = graph.add_value({.name = "large", .bytes = 1000, .output = true});
  graph.add_node({.outputs = {x}});
  graph.add_node({.inputs = {x}, .outputs = {part}, .views = {{}}});
  graph.add_node({.outputs = {large}});
  const Plan made = plan(graph);
  EXPECT_EQ(made.location(part).reuse, Reuse::own);
  EXPECT_EQ(made.peak_bytes(), 1008U);
}

TEST(Reuse, SaysWhichOfTwoEqualInputsWasTaken) {
  Pair pair;
  pair.second().inputs = {pair.x, pair.x};
  pair.second().ignored_inputs = {0};
  pair.second().inplace = {{.output = 0, .input = 1}};
  EXPECT_EQ(plan(pair.graph).inplace_of(pair.y).input, 1U);
}

TEST(Reuse, SaysWhyAValueHasNoPlace) {
  Graph graph;
  const ValueId external = graph.add_value({.name = "external", .bytes = 8, .external = true});
  const ValueId dynamic = graph.add_value({.name = "dynamic", .dynamic = true});
  const ValueId unknown = graph.add_value({.name = "unknown"});
  const ValueId never = graph.add_value({.name = "never", .bytes = 8});
  const ValueId placed = graph.add_value({.name = "placed", .bytes = 8});
  const ValueId later = graph.add_value({.name = "later", .bytes = 8});
  graph.add_node({.inputs = {external}, .outputs = {dynamic, unknown, placed}});
  graph.add_node({.inputs = {placed}, .outputs = {later}});
  const Plan made = plan(graph, {.nodes = NodeRange{0, 1}});
  const std::pair<ValueId, UnplannedReason> expected[] = {
      {external, UnplannedReason::external},   {dynamic, UnplannedReason::dynamic}, {unknown, UnplannedReason::unknown_size},
      {never, UnplannedReason::never_written}, {placed, UnplannedReason::placed},   {later, UnplannedReason::outside_range}};
  for (const auto& [value, reason] : expected) EXPECT_EQ(made.location(value).reason, reason) << graph.values[value].name;
  EXPECT_EQ(made.unplanned().size(), 5U);
  const std::map<UnplannedReason, std::size_t> counts = {{UnplannedReason::external, 1},
                                                         {UnplannedReason::dynamic, 1},
                                                         {UnplannedReason::unknown_size, 1},
                                                         {UnplannedReason::never_written, 1},
                                                         {UnplannedReason::outside_range, 1}};
  EXPECT_EQ(made.unplanned_by_reason(), counts);
}

TEST(Reuse, ValuesOfNoBytesHaveAPlaceAndConflictWithNone) {
  Graph graph;
  const ValueId nothing = graph.add_value({.name = "nothing", .bytes = 0, .output = true});
  const ValueId something = graph.add_value({.name = "something", .bytes = 8, .output = true});
  graph.add_node({.outputs = {nothing, something}});
  const Plan made = plan(graph);
  EXPECT_TRUE(made.location(nothing).planned());
  EXPECT_EQ(made.peak_bytes(), 8U);
  EXPECT_EQ(made.buffers().size(), 1U);
}

// The input of a node and its output are both needed while it runs.
TEST(Reuse, AnInputDoesNotDieBeforeItsLastReaderIsDone) {
  Pair pair;
  pair.second().inplace.clear();
  const Plan made = plan(pair.graph);
  EXPECT_EQ(made.life(pair.x), (NodeRange{0, 2}));
  EXPECT_EQ(made.peak_bytes(), 128U);
}

TEST(Reuse, RangesOfNodesArePlannedApart) {
  Graph graph;
  const ValueId a = graph.add_value({.name = "a", .bytes = 10});
  const ValueId b = graph.add_value({.name = "b", .bytes = 10});
  const ValueId c = graph.add_value({.name = "c", .bytes = 10, .output = true});
  graph.add_node({.outputs = {a}});
  graph.add_node({.inputs = {a}, .outputs = {b}, .inplace = {{}}});
  graph.add_node({.inputs = {a, b}, .outputs = {c}});
  const Plan forward = plan(graph, {.nodes = NodeRange{0, 2}});
  EXPECT_EQ(forward.location(b).reuse, Reuse::own) << "a is read after the range";
  EXPECT_EQ(forward.life(a).end, 2U);
  EXPECT_EQ(forward.peak_bytes(), 20U);
  const Plan backward = plan(graph, {.nodes = NodeRange{2, 3}});
  EXPECT_EQ(backward.location(a).reason, UnplannedReason::outside_range);
  EXPECT_EQ(backward.peak_bytes(), 10U);
}

}  // namespace
}  // namespace berth::testing
