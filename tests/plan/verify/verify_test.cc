// SPDX-License-Identifier: Apache-2.0
#include "berth/plan/verify.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "plan/lives_graph.h"
#include "plan/random_graph.h"
#include "support/everything.h"
#include "support/scale.h"

// The verifier: plans with one known error, and runs which show that nothing else passes.
namespace berth::testing {

using namespace internal::base;

namespace {

using ProblemKind = PlanProblem::Kind;

// A graph with a bit of everything, and its plan.
struct Case {
  Graph graph;
  PlanTables tables;
};

Case make_case() {
  Graph graph;
  const ValueId in = graph.add_value({.name = "in", .bytes = 64, .external = true});
  const ValueId a = graph.add_value({.name = "a", .bytes = 64});
  const ValueId b = graph.add_value({.name = "b", .bytes = 64});
  const ValueId c = graph.add_value({.name = "c", .bytes = 64});
  const ValueId half = graph.add_value({.name = "half", .bytes = 32});
  const ValueId out = graph.add_value({.name = "out", .bytes = 64, .output = true});
  graph.add_node({.name = "n0", .inputs = {in}, .outputs = {a, b}});
  graph.add_node({.name = "n1", .inputs = {a}, .outputs = {c}, .inplace = {{}}});
  graph.add_node({.name = "n2", .inputs = {b}, .outputs = {half}, .views = {{.offset_bytes = 32}}});
  graph.add_node({.name = "n3", .inputs = {c, half, b}, .outputs = {out}});
  return {graph, plan(graph).tables()};
}

void expect_caught(const Case& wrong, ProblemKind kind) {
  const std::vector<PlanProblem> problems = verify_plan(wrong.graph, wrong.tables);
  ASSERT_FALSE(problems.empty());
  EXPECT_EQ(to_string(problems.front().kind), to_string(kind)) << problems.front().text;
  EXPECT_FALSE(problems.front().text.empty());
  EXPECT_THROW(Plan(std::make_shared<const Graph>(wrong.graph), wrong.tables), ArgumentError);
}

void expect_caught(ProblemKind kind, const std::function<void(PlanTables&)>& change) {
  Case wrong = make_case();
  ASSERT_TRUE(verify_plan(wrong.graph, wrong.tables).empty());
  change(wrong.tables);
  expect_caught(wrong, kind);
}

TEST(Verify, CatchesTablesOfAnotherGraph) {
  expect_caught(ProblemKind::shape, [](PlanTables& t) { t.locations.pop_back(); });
  expect_caught(ProblemKind::shape, [](PlanTables& t) { t.arenas.emplace_back(); });
  expect_caught(ProblemKind::shape, [](PlanTables& t) { t.nodes.end = 9; });
  expect_caught(ProblemKind::shape, [](PlanTables& t) { t.parallel = 0; });
  expect_caught(ProblemKind::shape, [](PlanTables& t) { t.edges.push_back({0, 1}); });
  expect_caught(ProblemKind::shape, [](PlanTables& t) { t.locations[1].reuse = Reuse::none; });
  expect_caught(ProblemKind::shape, [](PlanTables& t) { t.locations[0].reuse = Reuse::own; });
  expect_caught(ProblemKind::shape, [](PlanTables& t) { t.locations[0].reason = UnplannedReason::dynamic; });
}

TEST(Verify, CatchesWhatLiesOutside) {
  expect_caught(ProblemKind::bounds, [](PlanTables& t) { t.locations[1].offset = SIZE_MAX - 8; });
  expect_caught(ProblemKind::bounds, [](PlanTables& t) { t.arenas[0].bytes -= 1; });
  expect_caught(ProblemKind::bounds, [](PlanTables& t) { t.capacity_bytes = 8; });
  expect_caught(ProblemKind::bounds, [](PlanTables& t) { t.locations[1].slot = 3; });
  expect_caught(ProblemKind::bounds, [](PlanTables& t) { t.slots.push_back({0, SIZE_MAX, 8}); });
}

TEST(Verify, CatchesWrongAlignmentAndExtents) {
  expect_caught(ProblemKind::alignment, [](PlanTables& t) { t.alignment = 128; });
  expect_caught(ProblemKind::alignment, [](PlanTables& t) { t.locations[1].alignment = 3; });
  expect_caught(ProblemKind::alignment, [](PlanTables& t) { t.locations[1].extent_bytes = 32; });
}

TEST(Verify, CatchesValuesThatLieOverOneAnother) {
  expect_caught(ProblemKind::overlap, [](PlanTables& t) { t.locations[5].offset = t.locations[3].offset; });
  expect_caught(ProblemKind::overlap, [](PlanTables& t) {
    t.locations[2].offset = t.locations[1].offset + 32, t.locations[4].offset = t.locations[2].offset + 32;
  });
}

TEST(Verify, CatchesReuseThatNobodyOffers) {
  expect_caught(ProblemKind::reuse, [](PlanTables& t) {
    t.locations[5].reuse = Reuse::in_place, t.locations[5].with = 3, t.locations[5].offset = t.locations[3].offset;
  });
  expect_caught(ProblemKind::reuse, [](PlanTables& t) { t.locations[3].reuse = Reuse::identity; });
  expect_caught(ProblemKind::reuse, [](PlanTables& t) { t.locations[3].with = 2; });
  expect_caught(ProblemKind::reuse, [](PlanTables& t) { t.locations[4].offset = t.locations[2].offset; });
  expect_caught(ProblemKind::reuse, [](PlanTables& t) { t.locations[1].reuse = Reuse::joined; });
  expect_caught(ProblemKind::reuse, [](PlanTables& t) { t.locations[3].with = kNoValue; });
}

TEST(Verify, CatchesTotalsThatAreNotTrue) {
  expect_caught(ProblemKind::totals, [](PlanTables& t) { t.arenas[0].lower_bound_bytes -= 1; });
  expect_caught(ProblemKind::totals, [](PlanTables& t) { t.arenas[0].naive_bytes += 1; });
  expect_caught(ProblemKind::totals, [](PlanTables& t) { t.arenas[0].bytes += 1; });
  expect_caught(ProblemKind::totals, [](PlanTables& t) { t.locations[3].buffer = 7; });
}

TEST(Verify, CatchesSlotsThatOverlapOrAreNotThere) {
  const Graph graph = lives_graph({{0, 1, 100}, {0, 1, 20}, {0, 1, 0}});
  const Case slots{graph, plan(graph, {.strategy = "slots"}).tables()};
  Case overlapping = slots;
  overlapping.tables.slots[1].offset = overlapping.tables.locations[1].offset = 60;
  overlapping.tables.slots.push_back({0, 0, 50});
  expect_caught(overlapping, ProblemKind::overlap);
  Case missing = slots;
  missing.tables.locations[2].slot = 123456;
  expect_caught(missing, ProblemKind::bounds);
}

TEST(Verify, CatchesAPlanWithoutPlacesThatClaimsBytes) {
  const Graph graph = lives_graph({{0, 1, 100}});
  Case none{graph, plan(graph, {.capacity_bytes = 50}).tables()};
  EXPECT_TRUE(verify_plan(none.graph, none.tables).empty());
  none.tables.arenas[0].bytes = 1;
  expect_caught(none, ProblemKind::totals);
}

TEST(Verify, SaysAtLeastOneThing) {
  Case wrong = make_case();
  wrong.tables.locations.clear();
  EXPECT_EQ(verify_plan(wrong.graph, wrong.tables, 0).size(), 1U);
}

TEST(Verify, APlanFromOutsideNeedsAGraphThatIsValid) {
  Case wrong = make_case();
  EXPECT_THROW(Plan(nullptr, wrong.tables), ArgumentError);
  wrong.graph.nodes[0].outputs.push_back(99);
  EXPECT_THROW(Plan(std::make_shared<const Graph>(wrong.graph), wrong.tables), ArgumentError);
}

TEST(Verify, CatchesAMissingEdgeOfAParallelPlan) {
  Graph graph;
  const ValueId a = graph.add_value({.bytes = 64});
  const ValueId b = graph.add_value({.bytes = 8, .output = true});
  const ValueId c = graph.add_value({.bytes = 64, .output = true});
  graph.add_node({.outputs = {a}});
  graph.add_node({.inputs = {a}, .outputs = {b}});
  graph.add_node({.outputs = {c}});
  Case wrong{graph, plan(graph, {.parallel = 2, .most_edges = 1}).tables()};
  ASSERT_EQ(wrong.tables.edges.size(), 1U);
  wrong.tables.edges.clear();
  expect_caught(wrong, ProblemKind::order);
}

// ---- Random damage. What the verifier accepts must also pass a shadow run with real bytes.

void damage(Random& random, PlanTables& tables) {
  ValueLocation& location = tables.locations[random.below(tables.locations.size())];
  PlanArena& arena = tables.arenas[random.below(tables.arenas.size())];
  const auto small = [&] { return static_cast<std::size_t>(random.below(8)) * 4; };
  switch (random.below(13)) {
    case 0: location.offset = small(); break;
    case 1: location.offset += 4 + small(); break;
    case 2: location.offset -= std::min<std::size_t>(location.offset, 4 + small()); break;
    case 3: location.with = static_cast<ValueId>(random.below(tables.locations.size())); break;
    case 4: location.reuse = static_cast<Reuse>(random.below(6)); break;
    case 5: arena.bytes -= std::min<std::size_t>(arena.bytes, 1 + small()); break;
    case 6: arena.lower_bound_bytes += 1 + small(); break;
    case 7:
      if (!tables.edges.empty()) tables.edges.erase(tables.edges.begin() + static_cast<std::ptrdiff_t>(random.below(tables.edges.size())));
      break;
    case 8: location.extent_bytes += 4 + small(); break;
    case 9: location.alignment *= 2; break;
    case 10: location.buffer = static_cast<std::uint32_t>(random.below(tables.locations.size())); break;
    case 11:
      if (!tables.slots.empty()) tables.slots[random.below(tables.slots.size())].offset += 4 + small();
      break;
    default: std::swap(location.offset, tables.locations[random.below(tables.locations.size())].offset); break;
  }
}

PlanOptions options_to_damage(Random& random) {
  PlanOptions options{.strategy = random.one_in(4) ? "slots" : "best"};
  if (!random.one_in(3)) return options;
  options.parallel = 2;
  options.most_edges = random.below(8);
  return options;
}

TEST(Verify, NoDamagedPlanGetsThroughThatAShadowRunFaults) {
  Random random(seed());
  const std::uint64_t runs = scaled(100'000, 500);
  std::uint64_t caught = 0;
  std::uint64_t harmless = 0;
  while (caught < runs) {
    const Graph graph = random_graph(random, 10);
    if (graph.values.empty()) continue;
    const Plan good = plan(graph, options_to_damage(random));
    for (int i = 0; i < 16; ++i) {
      PlanTables tables = good.tables();
      damage(random, tables);
      if (tables == good.tables()) continue;
      if (!verify_plan(graph, tables, 1).empty()) {
        ++caught;
        continue;
      }
      ++harmless;  // another plan, and a correct one: the shadow run proves it
      const Plan other(std::make_shared<const Graph>(graph), tables);
      const ShadowReport report =
          shadow_run(place(other), other.tables().parallel > 1 ? random_order(random, other) : std::vector<NodeId>());
      ASSERT_TRUE(report.ok()) << report.wrong.front();
    }
  }
  did(std::to_string(caught) + " damaged plans caught, " + std::to_string(harmless) + " changes that do no harm shown so by shadow runs");
  EXPECT_LT(harmless, caught) << "the damage is too gentle";
}

}  // namespace
}  // namespace berth::testing
