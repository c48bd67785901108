// SPDX-License-Identifier: Apache-2.0
#include "berth/plan/graph.h"

#include <gtest/gtest.h>

#include "support/errors.h"

namespace berth::testing {
namespace {

// a → n0 → b → n1 → c
struct Chain {
  Graph graph;
  ValueId a = graph.add_value({.name = "a", .bytes = 8, .external = true});
  ValueId b = graph.add_value({.name = "b", .bytes = 8});
  ValueId c = graph.add_value({.name = "c", .bytes = 8, .output = true});

  Chain() {
    graph.add_node({.name = "n0", .inputs = {a}, .outputs = {b}});
    graph.add_node({.name = "n1", .inputs = {b}, .outputs = {c}});
  }
};

// The error names what is wrong.
void expect_names(const Graph& graph, ErrorCode code, std::initializer_list<std::string> names) {
  EXPECT_ERROR(graph.validate(), ArgumentError, code);
  try {
    graph.validate();
  } catch (const Error& error) {
    for (const std::string& name : names) EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
  }
}

TEST(Graph, AcceptsNodesThatCanRun) { Chain().graph.validate(); }

TEST(Graph, RefusesACycleByItsNodes) {
  Chain chain;
  chain.graph.nodes[0].inputs.push_back(chain.c);
  expect_names(chain.graph, ErrorCode::graph_cycle, {"n0", "n1"});
  chain.graph.nodes[0].inputs = {chain.b};
  expect_names(chain.graph, ErrorCode::graph_cycle, {"n0"});
}

TEST(Graph, TellsAWrongOrderFromACycle) {
  Chain chain;
  std::swap(chain.graph.nodes[0], chain.graph.nodes[1]);
  expect_names(chain.graph, ErrorCode::undefined_value, {"n1", "'b'", "n0"});
}

TEST(Graph, RefusesValuesThatNobodyWrites) {
  Chain chain;
  chain.graph.values[chain.a].external = false;
  expect_names(chain.graph, ErrorCode::undefined_value, {"'a'", "n0"});
}

TEST(Graph, RefusesValuesThatAreThereTwice) {
  Chain chain;
  chain.graph.nodes[1].outputs.push_back(chain.b);
  expect_names(chain.graph, ErrorCode::duplicate_value, {"'b'", "n0", "n1"});
  Chain named;
  named.graph.values[named.c].name = "b";
  expect_names(named.graph, ErrorCode::duplicate_value, {"'b'"});
  named.graph.values[named.b].name = named.graph.values[named.c].name = "";
  named.graph.validate();  // without names they are distinguished by number
  Chain devices;
  devices.graph.devices = {"cpu:0", "cpu:0"};
  expect_names(devices.graph, ErrorCode::duplicate_value, {"cpu:0"});
}

TEST(Graph, RefusesIndicesThatAreNotThere) {
  Chain chain;
  chain.graph.nodes[0].inputs.push_back(99);
  expect_names(chain.graph, ErrorCode::out_of_bounds, {"n0", "99"});
  Chain device;
  device.graph.values[device.b].device = 1;
  expect_names(device.graph, ErrorCode::out_of_bounds, {"'b'"});
}

TEST(Graph, RefusesOptionsThatNameAMissingInputOrOutput) {
  const auto with = [](auto change) {
    Chain chain;
    change(chain.graph.nodes[1]);
    return chain.graph;
  };
  expect_names(with([](GraphNode& n) { n.inplace = {{.output = 1, .input = 0}}; }), ErrorCode::out_of_bounds, {"n1", "output 1"});
  expect_names(with([](GraphNode& n) { n.inplace = {{.output = 0, .input = 1}}; }), ErrorCode::out_of_bounds, {"n1", "input 1"});
  expect_names(with([](GraphNode& n) { n.ignored_inputs = {1}; }), ErrorCode::out_of_bounds, {"n1"});
  expect_names(with([](GraphNode& n) { n.views = {{.output = 0, .input = 5}}; }), ErrorCode::out_of_bounds, {"n1", "input 5"});
  expect_names(with([](GraphNode& n) {
                 n.inputs.push_back(kNoValue);
                 n.inplace = {{.output = 0, .input = 1}};
               }),
               ErrorCode::out_of_bounds, {"n1", "left out"});
}

TEST(Graph, RefusesViewsThatReachOutside) {
  Chain chain;
  chain.graph.nodes[1].views = {{.output = 0, .input = 0, .offset_bytes = 1}};
  expect_names(chain.graph, ErrorCode::out_of_bounds, {"'b'", "'c'"});
  chain.graph.nodes[1].views = {{.output = 0, .input = 0, .offset_bytes = SIZE_MAX, .of_input = false}};
  expect_names(chain.graph, ErrorCode::out_of_bounds, {"'b'", "'c'"});
}

TEST(Graph, RefusesSizesThatCannotBe) {
  Chain chain;
  chain.graph.values[chain.b].bytes = SIZE_MAX;
  expect_names(chain.graph, ErrorCode::size_overflow, {"'b'"});
  Chain shaped;
  shaped.graph.values[shaped.b] = {.name = "b", .dtype = DType::f64, .shape = Shape{INT64_MAX, 2}};
  expect_names(shaped.graph, ErrorCode::size_overflow, {"'b'"});
  shaped.graph.values[shaped.b] = {.name = "b", .bytes = 9, .dtype = DType::f64, .shape = Shape{1}};
  expect_names(shaped.graph, ErrorCode::size_mismatch, {"'b'", "9"});
  shaped.graph.values[shaped.b] = {.name = "b", .bytes = 8, .alignment = 12};
  expect_names(shaped.graph, ErrorCode::invalid_alignment, {"'b'", "12"});
}

TEST(Graph, FindsValuesByNameAndDevicesByText) {
  Chain chain;
  EXPECT_EQ(chain.graph.find("c"), chain.c);
  EXPECT_ERROR(chain.graph.find("z"), ArgumentError, ErrorCode::undefined_value);
  EXPECT_EQ(chain.graph.add_device("cpu:0"), 0U);
  EXPECT_EQ(chain.graph.add_device("sim:0"), 1U);
}

}  // namespace
}  // namespace berth::testing
