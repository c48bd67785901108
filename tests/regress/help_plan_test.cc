// SPDX-License-Identifier: Apache-2.0
// What errors of plans, and of the files that they are read from, say would help is done here, as a user would do it.
// Most of planning is in tests/plan/help_test.cc.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <regex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "support/errors.h"
#include "support/everything.h"

namespace berth::testing {
namespace {

// x is external; a and b are planned, 4096 bytes each; y is the output.
Graph chain() {
  Graph graph;
  const ValueId x = graph.add_value({.name = "x", .bytes = 4096, .external = true});
  const ValueId a = graph.add_value({.name = "a", .bytes = 4096});
  const ValueId b = graph.add_value({.name = "b", .bytes = 4096});
  const ValueId y = graph.add_value({.name = "y", .bytes = 4096, .output = true});
  graph.add_node({.op = "MatMul", .inputs = {x, x}, .outputs = {a}});
  graph.add_node({.op = "Relu", .inputs = {a}, .outputs = {b}});
  graph.add_node({.op = "Relu", .inputs = {b, x}, .outputs = {y}});
  return graph;
}

// A value that is needed at both ends of a chain, so that a budget has something to propose.
Graph with_a_gap() {
  Graph graph;
  const ValueId x = graph.add_value({.name = "x", .bytes = 64, .external = true});
  const ValueId kept = graph.add_value({.name = "kept", .bytes = 8192});
  graph.add_node({.op = "Make", .inputs = {x}, .outputs = {kept}});
  ValueId last = x;
  for (int i = 0; i < 3; ++i) {
    const ValueId next = graph.add_value({.name = "v" + std::to_string(i), .bytes = 8192});
    graph.add_node({.op = "Step", .inputs = {last}, .outputs = {next}});
    last = next;
  }
  const ValueId y = graph.add_value({.name = "y", .bytes = 64, .output = true});
  graph.add_node({.op = "Join", .inputs = {last, kept}, .outputs = {y}});
  return graph;
}

TEST(HelpFollowed, OfPlansAsTables) {
  const auto graph = std::make_shared<const Graph>(chain());
  const Plan made = plan(graph);
  const auto fixed_at = [](std::size_t offset, std::size_t alignment) {
    return [=] {
      Graph changed = chain();
      changed.values[1].fixed_offset = offset;
      (void)plan(std::move(changed), {.strategy = "offsets", .alignment = alignment});
    };
  };
  follow({
      {"pass a graph", [] { (void)plan(std::shared_ptr<const Graph>()); }, [&] { (void)plan(graph); }},
      {"pass a graph", [&] { (void)Plan(nullptr, made.tables()); }, [&] { (void)Plan(graph, made.tables()); }},
      {"make the plan again from its graph",
       [&] {
         PlanTables tables = made.tables();
         tables.locations[2].offset = tables.locations[1].offset;
         (void)Plan(graph, tables);
       },
       [&] { (void)Plan(graph, plan(graph).tables()); }},
      {"fix it at such an offset", fixed_at(100, 64), fixed_at(128, 64)},
      {"check its size, offset and alignment", fixed_at(SIZE_MAX / 2 + 1, 1), fixed_at(4096, 1)},
  });
}

TEST(HelpFollowed, OfBudgetsAndShadowRuns) {
  const Graph graph = with_a_gap();
  const BudgetAnswer answer = plan_budget(graph, {.budget_bytes = 17'000});
  ASSERT_FALSE(answer.proposals.empty());
  const std::vector<BudgetItem> made_up = {{.kind = BudgetItem::Kind::move, .value = 99, .after = 1, .before = 2}};
  const Placement placement = place(plan(chain()));
  follow({
      {"use items that plan_budget gave for this graph", [&] { (void)with_items(answer.plan.graph(), made_up, "sim:0"); },
       [&] { (void)with_items(answer.plan.graph(), answer.proposals[0].items, "elsewhere:0"); }},
      {"give every node of the plan once, each after those whose values it reads",
       [&] {
         (void)shadow_run(placement, {2, 1, 0});
       },
       [&] {
         EXPECT_TRUE(shadow_run(placement, {0, 1, 2}).ok());
       }},
      {"plan it with the alignment of the dtype",
       [] {
         Graph odd = chain();
         odd.values[1].bytes = 4095;
         odd.values[2].bytes = 4095;
         const Placement at = place(plan(odd, {.strategy = "offsets"}));
         for (const ValueId v : {1U, 2U}) (void)at.at(v, DType::f32, {8});
       },
       [] {
         Graph odd = chain();
         odd.values[1].bytes = 4095;
         odd.values[2].bytes = 4095;
         odd.values[1].alignment = odd.values[2].alignment = sizeof(float);
         const Placement at = place(plan(odd, {.strategy = "offsets"}));
         for (const ValueId v : {1U, 2U}) (void)at.at(v, DType::f32, {8});
       }},
  });
}

std::function<void()> reading_graph(const std::string& text) {
  return [text] { (void)read_graph(text); };
}

TEST(HelpFollowed, OfGraphsAsJson) {
  const auto good = reading_graph(R"({"berth": "graph", "values": [{"name": "a", "bytes": 8}], "nodes": []})");
  follow({
      {"check it with a JSON tool", reading_graph(R"({"berth": "graph", "values": [)"), good},
      {"give a graph or a plan of berth, whose forms need seven levels, or a graph of a runtime",
       reading_graph(R"({"berth": "graph", "values": )" + std::string(40, '[') + std::string(40, ']') + "}"), good},
      {"add it", reading_graph(R"({"berth": "graph", "nodes": []})"), good},
      {"see berth/plan/read_graph.h for the form, and berth/plan/runtime_graph.h for that of graph runtimes",
       reading_graph(R"({"berth": "graph", "values": 7, "nodes": []})"), good},
      {"check it",
       reading_graph(
           R"({"berth": "graph", "values": [{"name": "a", "bytes": 8, "external": true}], "nodes": [{"inputs": ["a"], "outputs": [], "ignored_inputs": [5000000000]}]})"),
       good},
  });
  const Plan made = plan(read_graph("id,lower,upper,size\n17,0,5,4096\n"));
  follow({{"give a plan that berth plan --out or PlanFile wrote", [] { (void)read_plan_json("id,lower,upper,size\n17,0,5,4096\n"); },
           [&] { (void)read_plan_json(to_json(PlanFile{made})); }}});
  follow({
      {"give a file of a graph", [] { (void)read_graph_json(R"({"berth": "table", "values": [], "nodes": []})"); }, good},
      {"use the version of berth that wrote it", reading_graph(R"({"berth": "graph", "version": 99, "values": [], "nodes": []})"), good},
      {"values count from 0, in the order of \"values\"",
       reading_graph(R"({"berth": "graph", "values": [{"bytes": 8, "external": true}], "nodes": [{"inputs": [1], "outputs": []}]})"),
       reading_graph(R"({"berth": "graph", "values": [{"bytes": 8, "external": true}], "nodes": [{"inputs": [0], "outputs": []}]})")},
  });
  const std::string members = help_of(reading_graph(R"({"berth": "graph", "values": [{"name": "a", "size": 8}], "nodes": []})"));
  EXPECT_TRUE(is_like(members, "its members are: …")) << members;
  EXPECT_NE(members.find("name, "), std::string::npos) << members;
  EXPECT_NE(members.find("bytes"), std::string::npos) << members;
}

TEST(HelpFollowed, OfPlansAsJson) {
  const std::string written = to_json(PlanFile{plan(chain())});
  const auto changed = [&](const char* from, const char* to) {
    return [&written, from, to] {
      const std::string text = std::regex_replace(written, std::regex(from), to, std::regex_constants::format_first_only);
      ASSERT_NE(text, written) << from;
      (void)read_plan_json(text);
    };
  };
  const auto as_written = [&] { (void)read_plan_json(written); };
  follow({
      {"use one of: optimal, feasible, infeasible, unknown", changed("\"outcome\": ?\"\\w+\"", "\"outcome\":\"perfect\""), as_written},
      {"give two nodes", changed("\"steps\": ?\\[[^\\]]*\\]", "\"steps\":[0]"), as_written},
      {"take the file as it was written, or plan again", changed("\"peak_bytes\": ?\\d+", "\"peak_bytes\":17"),
       [&] {
         as_written();
         (void)read_plan_json(to_json(PlanFile{plan(chain())}));
       }},
  });
}

TEST(HelpFollowed, OfGraphsAsLines) {
  follow({
      {"a line is index operator | producer indices | output bytes, such as 7 Conv | 5 6 | 4096; a comment begins with # and may name the "
       "graph's outputs, as in # outputs: 3 7",
       reading_graph("0 Conv | | many\n"), reading_graph("3 Conv | | 64\n7 Conv | 3 | 4096\n# outputs: 3 7\n")},
      {"the first line names the columns, id,lower,upper,size and perhaps alignment and offset; each further one is a buffer, such as "
       "17,0,5,4096; no field is quoted",
       reading_graph("id,lower,upper,size\na,0,1\n"), reading_graph("id,lower,upper,size\n17,0,5,4096\n")},
  });
}

TEST(HelpFollowed, OfReadingWithinLimits) {
  std::string text = "id,lower,upper,size\n";
  for (int i = 0; i < 5000; ++i) text += std::to_string(i) + ',' + std::to_string(i) + ',' + std::to_string(i + 2) + ",64\n";
  const auto reading = [&](const ReadLimits& limits) { return [&text, limits] { (void)read_graph(text, "lives", limits); }; };
  follow({
      {"if you trust it, allow more (--max-memory 4GiB, ReadLimits::memory_bytes)", reading({.memory_bytes = 1000}),
       reading({.memory_bytes = 4_GiB})},
      {"allow at least …", reading({.time = std::chrono::seconds(0)}), reading({.time = std::chrono::minutes(1)})},
  });
}

}  // namespace
}  // namespace berth::testing
