// SPDX-License-Identifier: Apache-2.0
// What errors of planning say would help is done here, as a user would do it, and works.
#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "berth/plan/budget.h"
#include "berth/plan/graph.h"
#include "berth/plan/placement.h"
#include "berth/plan/plan.h"
#include "berth/plan/read_graph.h"
#include "berth/plan/report.h"
#include "berth/plan/slot_allocator.h"
#include "support/errors.h"
#include "support/everything.h"

namespace berth::testing {
namespace {

// x is external; a and b are planned, 4096 bytes each; y is the output.
Graph sample() {
  Graph graph;
  const ValueId x = graph.add_value({.name = "x", .bytes = 4096, .external = true});
  const ValueId a = graph.add_value({.name = "a", .bytes = 4096});
  const ValueId b = graph.add_value({.name = "b", .bytes = 4096});
  const ValueId y = graph.add_value({.name = "y", .dtype = DType::f32, .shape = Shape{32, 32}, .output = true});
  graph.add_node({.op = "MatMul", .inputs = {x, x}, .outputs = {a}});
  graph.add_node({.op = "Relu", .inputs = {a}, .outputs = {b}});
  graph.add_node({.op = "Relu", .inputs = {b}, .outputs = {y}});
  return graph;
}

// The sample after a change.
template <class Change>
std::function<void()> valid(Change change) {
  return [change] {
    Graph graph = sample();
    change(graph);
    graph.validate();
  };
}

std::function<void()> planned(PlanOptions options) {
  return [options] { (void)plan(sample(), options); };
}

TEST(HelpFollowed, OfGraphs) {
  follow({
      {"plan it in parts", valid([](Graph& g) {
         for (int i = 0; i < 1024; ++i) g.add_device("sim:" + std::to_string(i));
       }),
       valid([](Graph& g) { g.add_device("sim:0"); })},
      {"add_device gives an index", valid([](Graph& g) { g.values[1].device = 7; }),
       valid([](Graph& g) { g.values[1].device = g.add_device("sim:0"); })},
      {"use one, such as 64", valid([](Graph& g) { g.values[1].alignment = 3; }), valid([](Graph& g) { g.values[1].alignment = 64; })},
      {"check its size", valid([](Graph& g) { g.values[1].bytes = SIZE_MAX; }), valid([](Graph& g) { g.values[1].bytes = 4096; })},
      {"check its shape", valid([](Graph& g) {
         g.values[3].shape = Shape{INT64_MAX, 2};
       }),
       valid([](Graph& g) {
         g.values[3].shape = Shape{64, 16};
       })},
      {"leave one of them out", valid([](Graph& g) { g.values[3].bytes = 17; }), valid([](Graph& g) {
         g.values[3].bytes = 17;
         g.values[3].shape.reset();
       })},
      {"name each device once", valid([](Graph& g) {
         g.devices = {"cpu:0", "cpu:0"};
       }),
       valid([](Graph& g) {
         g.devices = {"cpu:0", "sim:0"};
       })},
      {"give each its own", valid([](Graph& g) { g.values[2].name = "a"; }), valid([](Graph& g) { g.values[2].name = "c"; })},
      {"write a value once", valid([](Graph& g) { g.nodes[1].outputs = {1}; }), valid([](Graph& g) { g.nodes[1].outputs = {2}; })},
      {"add_value gives a number", valid([](Graph& g) { g.nodes[2].inputs = {99}; }),
       valid([](Graph& g) { g.nodes[2].inputs = {g.add_value({.bytes = 1, .external = true})}; })},
      {"name a position that is there", valid([](Graph& g) { g.nodes[1].ignored_inputs = {1}; }),
       valid([](Graph& g) { g.nodes[1].ignored_inputs = {0}; })},
      {"keep the view inside", valid([](Graph& g) { g.nodes[1].views = {{.output = 0, .input = 0, .offset_bytes = 1}}; }),
       valid([](Graph& g) { g.nodes[1].views = {{.output = 0, .input = 0, .offset_bytes = 0}}; })},
      {"mark it external if it lives elsewhere", valid([](Graph& g) { g.values[0].external = false; }),
       valid([](Graph& g) { g.values[0].external = true; })},
      {"put the nodes into an order in which they can run", valid([](Graph& g) { std::swap(g.nodes[0], g.nodes[1]); }),
       valid([](Graph&) {})},
      {"break the cycle", valid([](Graph& g) { g.nodes[0].inputs = {3}; }), valid([](Graph& g) { g.nodes[0].inputs = {0}; })},
      {"look at Graph::values", [] { (void)sample().find("nobody"); }, [] { (void)sample().find(sample().values[1].name); }},
  });
}

TEST(HelpFollowed, OfPlanOptions) {
  const std::string strategies = help_of(planned({.strategy = "quick"}));
  const std::string orders = help_of(planned({.order = "any"}));
  ASSERT_TRUE(strategies.starts_with("use one of ") && orders.starts_with("use one of ")) << strategies << orders;
  for (const PlanStrategy& one : plan_strategies()) {
    EXPECT_NE(strategies.find(one.name), std::string::npos) << one.name;
    (void)plan(sample(), {.strategy = std::string(one.name)});
  }
  for (const PlanOrder& one : plan_orders()) {
    EXPECT_NE(orders.find(one.name), std::string::npos) << one.name;
    (void)plan(sample(), {.order = std::string(one.name)});
  }
  Graph fixed = sample();
  fixed.values[1].fixed_offset = 0;
  follow({
      {"leave it out to try 1 to 16", planned({.strategy = "slots", .match_range = -1}), planned({.strategy = "slots"})},
      {"use the strategy slots, or leave it out", planned({.strategy = "offsets", .match_range = 2}),
       planned({.strategy = "slots", .match_range = 2})},
      {"use the strategy slots, or leave them out", planned({.strategy = "offsets", .slots = {{.bytes = 4096}}, .slots_are_free = true}),
       planned({.strategy = "slots", .slots = {{.bytes = 4096}}, .slots_are_free = true})},
      {"pass slots of a plan for the same devices",
       planned({.strategy = "slots", .slots = {{.device = 3, .bytes = 4096}}, .slots_are_free = true}),
       planned({.strategy = "slots", .slots = plan(sample(), {.strategy = "slots"}).tables().slots, .slots_are_free = true})},
      {"use the strategy slots", planned({.strategy = "slots_plain", .parallel = 2}), planned({.strategy = "slots", .parallel = 2})},
      {"use the strategy offsets", planned({.strategy = "slots", .arenas = {{.name = "fast"}}}),
       planned({.strategy = "offsets", .arenas = {{.name = "fast"}}})},
      {"give a size above 0", planned({.max_chunk_bytes = 0}), planned({.max_chunk_bytes = 8192})},
      {"use an index into Graph::devices", planned({.arenas = {{.name = "fast", .device = 5}}}),
       planned({.arenas = {{.name = "fast", .device = 0}}})},
      {"name each arena once", planned({.arenas = {{.name = "fast"}, {.name = "fast"}}}),
       planned({.arenas = {{.name = "fast"}, {.name = "slow"}}})},
      {"remove the fixed offset, or plan for one arena", [&] { (void)plan(fixed, {.arenas = {{.name = "fast"}}}); },
       [&] {
         (void)plan(fixed);
         (void)plan(sample(), {.arenas = {{.name = "fast"}}});
       }},
      {"use the strategy offsets, or remove the fixed offset", [&] { (void)plan(fixed, {.strategy = "slots"}); },
       [&] {
         (void)plan(fixed, {.strategy = "offsets"});
         (void)plan(sample(), {.strategy = "slots"});
       }},
      {"leave one of the two out", planned({.order = "best", .parallel = 2}),
       [] {
         (void)plan(sample(), {.order = "best"});
         (void)plan(sample(), {.parallel = 2});
       }},
      {"say that nodes run in parallel, or leave the edges out", planned({.most_edges = 3}),
       [] {
         (void)plan(sample(), {.parallel = 2, .most_edges = 3});
         (void)plan(sample());
       }},
      {"give at least 1", [] { (void)colour_nodes(sample(), {}, 0); }, [] { (void)colour_nodes(sample(), {}, 1); }},
      {"use a range inside, begin before end",
       [] {
         (void)longest_path(sample(), {2, 9});
       },
       [] {
         (void)longest_path(sample(), {1, 3});
       }},
      {"use a range inside, begin before end", planned({.nodes = NodeRange{2, 9}}), planned({.nodes = NodeRange{1, 3}})},
      {"use 1 for nodes that run in order", planned({.parallel = 0}), planned({.parallel = 1})},
      {"use one, such as 64", planned({.alignment = 3}), planned({.alignment = 64})},
      {"use 1, or as many as there are processors", planned({.threads = 0}), planned({.threads = 2})},
      {"use 0 or more seconds", planned({.time_limit = std::chrono::seconds(-1)}), planned({.time_limit = std::chrono::seconds(0)})},
      {"use 0 or more seconds", planned({.time_limit = std::chrono::duration<double>(std::numeric_limits<double>::quiet_NaN())}),
       planned({.time_limit = std::chrono::seconds(0)})},
  });
}

TEST(HelpFollowed, OfPlansThatContinuePlans) {
  const auto after = [](const Plan& earlier, PlanOptions options) {
    return [earlier, options]() mutable {
      options.after = &earlier;
      (void)plan(sample(), options);
    };
  };
  const Plan first = plan(sample(), {.strategy = "slots", .nodes = NodeRange{0, 1}});
  const Plan none = plan(sample(), {.capacity_bytes = 1, .nodes = NodeRange{0, 1}});
  Graph other = sample();
  other.values[1].bytes = 8192;
  follow({
      {"continue from that plan with after, or say slots_are_free when it has ended",
       planned({.strategy = "slots", .nodes = NodeRange{1, 3}, .slots = first.tables().slots}),
       [&] {
         after(first, {.strategy = "slots", .nodes = NodeRange{1, 3}})();
         planned({.strategy = "slots", .slots = first.tables().slots, .slots_are_free = true})();
       }},
      {"pass the graph of that plan", after(plan(other, {.nodes = NodeRange{0, 1}}), {}), after(first, {})},
      {"give the earlier plan more capacity", after(none, {}),
       after(plan(sample(), {.capacity_bytes = 1 << 20, .nodes = NodeRange{0, 1}}), {})},
      {"plan ranges for nodes in order, or the whole graph in parallel", after(first, {.parallel = 2}), after(first, {})},
      {"begin at node 1, or later", after(first, {.nodes = NodeRange{0, 2}}), after(first, {.nodes = NodeRange{1, 2}})},
      {"give a range with nodes in it", after(first, {.nodes = NodeRange{2, 2}}), after(first, {.nodes = NodeRange{2, 3}})},
      {"plan every range for one arena", after(first, {.max_chunk_bytes = 1 << 20}), after(first, {})},
      {"leave the slots out", after(first, {.strategy = "slots", .slots = first.tables().slots, .slots_are_free = true}),
       after(first, {.strategy = "slots"})},
      {"leave that out", [&] { (void)plan_budget(sample(), {.budget_bytes = 8192, .plan = {.after = &first}}); },
       [] { (void)plan_budget(sample(), {.budget_bytes = 8192}); }},
  });
}

TEST(HelpFollowed, OfSlotAllocators) {
  const auto twice = [](int times) {
    SlotAllocator slots;
    const std::uint32_t slot = slots.request({.bytes = 8});
    for (int i = 0; i < times; ++i) slots.release(slot);
  };
  follow({
      {"use 16, or 0 for no reuse", [] { (void)SlotAllocator(-1); },
       [] {
         (void)SlotAllocator(16);
         (void)SlotAllocator(0);
       }},
      {"check its size", [] { (void)SlotAllocator().request({.bytes = SIZE_MAX}); }, [] { (void)SlotAllocator().request({.bytes = 8}); }},
      {"use one, such as 64", [] { (void)SlotAllocator().request({.bytes = 8, .alignment = 3}); },
       [] { (void)SlotAllocator().request({.bytes = 8, .alignment = 64}); }},
      {"release once what request gave", [&] { twice(2); }, [&] { twice(1); }},
      {"occupy slots that the allocator was made with, before any request", [] { SlotAllocator().occupy(0); },
       [] { SlotAllocator(16, {{.bytes = 8}}).occupy(0); }},
  });
}

TEST(HelpFollowed, OfPlacementsOnOneMemory) {
  const Plan first = plan(sample(), {.nodes = NodeRange{0, 1}});
  const Plan second = plan(sample(), {.after = &first});
  const Plan chunked = plan(sample(), {.max_chunk_bytes = 8192});
  Graph elsewhere = sample();
  elsewhere.devices = {"sim:0"};
  Graph other = sample();
  other.nodes[0].op = "Add";
  follow({
      {"place the plans together: place({earlier, plan})", [&] { (void)place(second, place(first)); },
       [&] {
         (void)place({first, second});
       }},
      {"plan every range for one arena",
       [&] {
         (void)place({chunked, chunked});
       },
       [&] {
         (void)place({first, second});
       }},
      {"give plans of ranges of one graph",
       [&] {
         (void)place({first, plan(elsewhere)});
       },
       [&] {
         (void)place({first, second});
       }},
      {"give placements of ranges of one graph",
       [&] {
         (void)shadow_run(std::vector{place(first), place(plan(other))});
       },
       [&] {
         (void)shadow_run(place({first, second}));
       }},
  });
}

TEST(HelpFollowed, OfBudgets) {
  const auto budget = [](BudgetOptions options) { return [options] { (void)plan_budget(sample(), options); }; };
  follow({
      {"use an index into Graph::devices", budget({.budget_bytes = 8192, .device = 4}), budget({.budget_bytes = 8192, .device = 0})},
      {"give bytes a second, above 0", budget({.budget_bytes = 8192, .bandwidth = 0}), budget({.budget_bytes = 8192, .bandwidth = 1e9})},
      {"leave that out", budget({.budget_bytes = 8192, .plan = {.parallel = 2}}), budget({.budget_bytes = 8192})},
      {"give the arenas capacities instead", budget({.budget_bytes = 8192, .plan = {.arenas = {{.name = "fast"}}}}),
       planned({.arenas = {{.name = "fast", .capacity_bytes = 8192}}})},
      {"leave the capacity out", budget({.budget_bytes = 8192, .plan = {.capacity_bytes = 8192}}), budget({.budget_bytes = 8192})},
      {"name another device", budget({.budget_bytes = 8192, .move_to = "cpu:0"}), budget({.budget_bytes = 8192, .move_to = "sim:0"})},
  });
}

TEST(HelpFollowed, OfPlacements) {
  const Plan made = plan(sample());
  const auto memory = pool("cpu");
  Placement placement = place(made);
  follow({
      {"plan with a larger capacity", [] { (void)place(plan(sample(), {.capacity_bytes = 100})); },
       [] { (void)place(plan(sample(), {.capacity_bytes = 16384})); }},
      {"pass an allocator of that device",
       [&] {
         (void)place(made, {{"cpu:0", pool(make_sim({}))}});
       },
       [&] {
         (void)place(made, {{"cpu:0", memory}});
       }},
      {"leave it out",
       [&] {
         (void)place(made, {{"sim:77", memory}});
       },
       [&] { (void)place(made); }},
      {"use an index into Graph::devices", [&] { (void)placement.arena(3); }, [&] { (void)placement.arena(0); }},
      {"use an index into PlanTables::chunks", [&] { (void)placement.chunk(0); },
       [] { (void)place(plan(sample(), {.max_chunk_bytes = 8192})).chunk(0); }},
      {"look at Plan::unplanned", [&] { (void)placement[0]; },
       [&] {
         ASSERT_EQ(made.unplanned().size(), 1U);
         EXPECT_EQ(made.unplanned()[0].value, 0U);
       }},
      {"plan again with the larger size", [&] { (void)placement.at(1, DType::u8, {5000}); },
       [] {
         Graph larger = sample();
         larger.values[1].bytes = 5000;
         (void)place(plan(larger)).at(1, DType::u8, {5000});
       }},
      {"use the number that add_value gave, or Graph::find", [&] { (void)made.location(99); },
       [&] { (void)made.location(made.graph().find("a")); }},
      {"drop its storages first",
       [&] {
         const Storage held = placement[1];
         placement.move(0, memory);
       },
       [&] { placement.move(0, memory); }},
      {"give the index of one of Graph::devices", [&] { (void)plan_picture(made, 3); }, [&] { (void)plan_picture(made, 0); }},
  });
}

TEST(HelpFollowed, OfGraphsAsText) {
  follow({
      {"give each buffer an id of its own", [] { (void)read_lives_csv("id,lower,upper,size\na,0,1,8\na,1,2,8\n"); },
       [] { (void)read_lives_csv("id,lower,upper,size\na,0,1,8\nb,1,2,8\n"); }},
      {"use 1, 2, 4, 8, …, or leave the field empty", [] { (void)read_lives_csv("id,lower,upper,size,alignment\na,0,1,8,3\n"); },
       [] { (void)read_lives_csv("id,lower,upper,size,alignment\na,0,1,8,4\nb,0,1,8,\n"); }},
      {"give each node an index of its own", [] { (void)read_graph_text("0 Conv | | 64\n0 Add | | 32\n"); },
       [] { (void)read_graph_text("0 Conv | | 64\n1 Add | | 32\n"); }},
      {"name nodes of this file that have an output", [] { (void)read_graph_text("0 Conv | | 64\n1 Add | 5 | 32\n"); },
       [] { (void)read_graph_text("0 Conv | | 64\n1 Add | 0 | 32\n"); }},
      {"name one of \"devices\", which are cpu:0 when left out",
       [] {
         (void)read_graph_json(
             R"({"berth": "graph", "values": [{"name": "a", "bytes": 8, "device": "sim:0", "external": true}], "nodes": []})");
       },
       [] {
         (void)read_graph_json(
             R"({"berth": "graph", "devices": ["cpu:0", "sim:0"], "values": [{"name": "a", "bytes": 8, "device": "sim:0", "external": true}], "nodes": []})");
         (void)read_graph_json(
             R"({"berth": "graph", "values": [{"name": "a", "bytes": 8, "device": "cpu:0", "external": true}], "nodes": []})");
       }},
      {"give each value a name of its own",
       [] {
         (void)read_graph_json(R"({"berth": "graph", "values": [{"name": "a", "bytes": 8}, {"name": "a", "bytes": 8}], "nodes": []})");
       },
       [] {
         (void)read_graph_json(R"({"berth": "graph", "values": [{"name": "a", "bytes": 8}, {"name": "b", "bytes": 8}], "nodes": []})");
       }},
      {"add it to \"values\", or write null for one that is left out",
       [] { (void)read_graph_json(R"({"berth": "graph", "values": [], "nodes": [{"op": "A", "inputs": ["x"], "outputs": []}]})"); },
       [] {
         (void)read_graph_json(
             R"({"berth": "graph", "values": [{"name": "x", "external": true}], "nodes": [{"op": "A", "inputs": ["x"], "outputs": []}]})");
         (void)read_graph_json(R"({"berth": "graph", "values": [], "nodes": [{"op": "A", "inputs": [null], "outputs": []}]})");
       }},
      {"keep one of them", [] { (void)read_graph_json(R"({"berth": "graph", "devices": ["cpu:0", "cpu:0"], "values": [], "nodes": []})"); },
       [] { (void)read_graph_json(R"({"berth": "graph", "devices": ["cpu:0"], "values": [], "nodes": []})"); }},
      {"give JSON, lines of id,lower,upper,size, or lines of index operator | producers | bytes; a model of ONNX is called NAME.onnx",
       [] { (void)read_graph("what is this"); },
       [] {
         (void)read_graph(R"({"berth": "graph", "values": [], "nodes": []})");
         (void)read_graph("id,lower,upper,size\na,0,1,8\n");
         (void)read_graph("0 Conv | | 64\n");
       }},
  });
}

}  // namespace
}  // namespace berth::testing
