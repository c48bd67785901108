// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/random.h"
#include "berth/plan/read_graph.h"
#include "support/errors.h"
#include "support/scale.h"

namespace berth::testing {

using namespace internal;
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string written(const Graph& graph, JsonWriter::Style style = JsonWriter::Style::compact) {
  JsonWriter json(style);
  graph.write_json(json);
  return json.take();
}

// A valid graph in which every member of every struct may differ from its default.
class RandomGraph {
 public:
  explicit RandomGraph(std::uint64_t seed) : random_(seed) {}

  Graph make() {
    graph_.name = name();
    if (some()) graph_.devices = {"cuda:0", "cpu:0", "\"odd\" \\ name\n"};
    const std::uint64_t inputs = random_.below(4);
    for (std::uint64_t i = 0; i < inputs; ++i) add_value().external = true;
    for (std::uint64_t left = random_.below(10); left > 0; --left) add_node();
    if (some()) add_value();  // used by no node
    return std::move(graph_);
  }

 private:
  bool some() { return random_.one_in(3); }
  std::string name() {
    if (some()) return {};
    return std::string(some() ? "\xc3\xa9\t\"" : "v") + std::to_string(number_++);
  }
  std::uint64_t large() { return some() ? random_.next() >> random_.below(64) : random_.below(100); }

  GraphValue& add_value() {
    GraphValue& value = graph_.values[graph_.add_value({.name = name()})];
    if (some()) value.dtype = all_dtypes()[random_.below(kDTypeCount)].dtype;
    if (some()) value.shape = some() ? Shape{} : Shape{random_.below(5), 7, random_.below(3)};
    if (value.dtype && value.shape)
      value.bytes = some() ? value.size_bytes() : std::nullopt;
    else if (!some())
      value.bytes = large() >> 1;
    value.device = static_cast<std::uint32_t>(random_.below(graph_.devices.size()));
    if (some()) value.alignment = std::size_t{1} << random_.below(64);
    value.dynamic = some();
    value.output = some();
    if (some()) value.fixed_offset = large();
    if (some()) value.preferred_offset = large();
    return value;
  }

  void add_node() {
    GraphNode node{.name = name(), .op = name()};
    for (std::uint64_t left = random_.below(4); left > 0 && !graph_.values.empty(); --left)
      node.inputs.push_back(random_.one_in(5) ? kNoValue : static_cast<ValueId>(random_.below(graph_.values.size())));
    for (std::uint64_t left = random_.below(3); left > 0; --left) {
      node.outputs.push_back(random_.one_in(5) ? kNoValue : static_cast<ValueId>(graph_.values.size()));
      if (node.outputs.back() != kNoValue) add_value();
    }
    for (std::uint32_t i = 0; i < node.inputs.size(); ++i) add_options(node, i);
    graph_.add_node(std::move(node));
  }

  void add_options(GraphNode& node, std::uint32_t input) {
    if (node.inputs[input] == kNoValue) return;
    if (some()) node.ignored_inputs.push_back(input);
    for (std::uint32_t output = 0; output < node.outputs.size(); ++output) {
      if (node.outputs[output] == kNoValue) continue;
      if (some()) node.inplace.push_back({output, input, some()});
      const auto whole = graph_.values[node.inputs[input]].size_bytes();
      const auto part = graph_.values[node.outputs[output]].size_bytes();
      if (whole && part && *part <= *whole) node.views.push_back({output, input, *whole - *part, true});
      if (!whole || !part) node.views.push_back({output, input, large(), some()});
    }
  }

  Random random_;
  Graph graph_;
  int number_ = 0;
};

void expect_equal(const GraphValue& a, const GraphValue& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.bytes, b.bytes);
  EXPECT_EQ(a.dtype, b.dtype);
  EXPECT_EQ(a.shape, b.shape);
  EXPECT_EQ(a.device, b.device);
  EXPECT_EQ(a.alignment, b.alignment);
  EXPECT_EQ(a.external, b.external);
  EXPECT_EQ(a.dynamic, b.dynamic);
  EXPECT_EQ(a.output, b.output);
  EXPECT_EQ(a.fixed_offset, b.fixed_offset);
  EXPECT_EQ(a.preferred_offset, b.preferred_offset);
}

void expect_equal(const InplaceOption& a, const InplaceOption& b) {
  EXPECT_EQ(std::tie(a.output, a.input, a.identity), std::tie(b.output, b.input, b.identity));
}

void expect_equal(const ViewOption& a, const ViewOption& b) {
  EXPECT_EQ(std::tie(a.output, a.input, a.offset_bytes, a.of_input), std::tie(b.output, b.input, b.offset_bytes, b.of_input));
}

template <class T>
void expect_equal(const std::vector<T>& a, const std::vector<T>& b);

void expect_equal(const GraphNode& a, const GraphNode& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.op, b.op);
  EXPECT_EQ(a.inputs, b.inputs);
  EXPECT_EQ(a.outputs, b.outputs);
  EXPECT_EQ(a.ignored_inputs, b.ignored_inputs);
  expect_equal(a.inplace, b.inplace);
  expect_equal(a.views, b.views);
}

template <class T>
void expect_equal(const std::vector<T>& a, const std::vector<T>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) expect_equal(a[i], b[i]);
}

void expect_equal(const Graph& a, const Graph& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.devices, b.devices);
  expect_equal(a.values, b.values);
  expect_equal(a.nodes, b.nodes);
}

TEST(GraphJson, ReadsWhatTheHeaderShows) {
  const Graph graph = read_graph_json(R"(
    {"berth": "graph", "version": 1, "name": "g", "devices": ["cpu:0", "cuda:1"],
     "values": [{"name": "x", "bytes": 4096, "dtype": "f32", "shape": [32, 32], "device": "cuda:1", "alignment": 64, "external": true},
                {"name": "y", "dynamic": true, "output": true, "fixed_offset": 128, "preferred_offset": 256},
                {"bytes": 8}],
     "nodes": [{"name": "n", "op": "Relu", "inputs": ["x", null, 0], "outputs": ["y", 2], "ignored_inputs": [2],
                "inplace": [{"output": 0, "input": 0, "identity": true}],
                "views": [{"output": 1, "input": 0, "offset_bytes": 16, "of_input": true}]}]})");
  EXPECT_EQ(graph.name, "g");
  EXPECT_THAT(graph.devices, ElementsAre("cpu:0", "cuda:1"));
  ASSERT_EQ(graph.values.size(), 3U);
  expect_equal(graph.values[0],
               {.name = "x", .bytes = 4096, .dtype = DType::f32, .shape = Shape{32, 32}, .device = 1, .alignment = 64, .external = true});
  expect_equal(graph.values[1], {.name = "y", .dynamic = true, .output = true, .fixed_offset = 128, .preferred_offset = 256});
  ASSERT_EQ(graph.nodes.size(), 1U);
  expect_equal(graph.nodes[0], {.name = "n",
                                .op = "Relu",
                                .inputs = {0, kNoValue, 0},
                                .outputs = {1, 2},
                                .ignored_inputs = {2},
                                .inplace = {{0, 0, true}},
                                .views = {{1, 0, 16, true}}});
}

TEST(GraphJson, WhatNeedNotBeThereMayBeLeftOut) {
  const Graph graph = read_graph_json(R"({"nodes": [], "values": [{}], "berth": "graph"})");
  EXPECT_THAT(graph.devices, ElementsAre("cpu:0"));
  expect_equal(graph.values, std::vector<GraphValue>(1));
}

TEST(GraphJson, MembersMayStandInAnyOrder) {
  const Graph graph = read_graph_json(R"({"nodes": [{"outputs": ["a"], "inputs": []}], "values": [{"device": "sim:0", "name": "a"}],
                                          "devices": ["cpu:0", "sim:0"], "berth": "graph"})");
  EXPECT_EQ(graph.values[0].device, 1U);
  EXPECT_THAT(graph.nodes[0].outputs, ElementsAre(0));
}

TEST(GraphJson, ReadsBackWhatItWrites) {
  Random random(seed());
  const std::uint64_t runs = scaled(20'000, 200);
  for (std::uint64_t i = 0; i < runs && !HasFailure(); ++i) {
    const Graph graph = RandomGraph(random.next()).make();
    const std::string json = written(graph);
    ASSERT_TRUE(nlohmann::json::accept(json)) << json;
    expect_equal(read_graph_json(json), graph);
    EXPECT_EQ(written(read_graph_json(json)), json);
    expect_equal(read_graph(written(graph, JsonWriter::Style::pretty)), graph);
    EXPECT_FALSE(HasFailure()) << json;
  }
  did(std::to_string(runs) + " graphs");
}

TEST(GraphJson, WritesOnlyGraphsThatCanBeReadAgain) {
  Graph graph;
  graph.add_node({.outputs = {5}});
  EXPECT_ERROR(written(graph), ArgumentError, ErrorCode::out_of_bounds);
}

TEST(GraphJson, NamesThatAreNotUtf8AreReplaced) {
  Graph graph;
  graph.add_value({.name = "a\xff", .bytes = 1});
  graph.add_node({.outputs = {0}});
  EXPECT_EQ(read_graph_json(written(graph)).values[0].name, "a\xef\xbf\xbd");
}

// A graph with the text of one value, one node, or one top-level member replaced.
std::string with_value(const std::string& members) {
  return R"({"berth":"graph","values":[{"name":"a","external":true},{"name":"b",)" + members + R"(}],"nodes":[]})";
}
std::string with_node(const std::string& members) {
  return R"({"berth":"graph","values":[{"name":"a","external":true},{"name":"b"}],"nodes":[{)" + members + "}]}";
}

struct Bad {
  std::string json;
  std::string at;
};

TEST(GraphJson, RefusesWhatBreaksTheFormAndSaysWhere) {
  const Bad bad[] = {
      {"[]", ""},
      {"17", ""},
      {R"({"values":[],"nodes":[]})", "berth"},
      {R"({"berth":"plan","values":[],"nodes":[]})", "berth"},
      {R"({"berth":"graph","values":[]})", "nodes"},
      {R"({"berth":"graph","nodes":[]})", "values"},
      {R"({"berth":"graph","version":2,"values":[],"nodes":[]})", "version"},
      {R"({"berth":"graph","values":{},"nodes":[]})", "values"},
      {R"({"berth":"graph","values":[],"nodes":[],"edges":[]})", "edges"},
      {R"({"berth":"graph","values":[],"values":[],"nodes":[]})", "values"},
      {R"({"berth":"graph","values":[],"v\u0061lues":[],"nodes":[]})", "values"},
      {R"({"berth":"graph","values":[],"nodes":[],"devices":["cpu:0","cpu:0"]})", "devices[1]"},
      {R"({"berth":"graph","values":[],"nodes":[],"devices":[0]})", "devices[0]"},
      {with_value(R"("bytes":-1)"), "values[1].bytes"},
      {with_value(R"("bytes":1.0)"), "values[1].bytes"},
      {with_value(R"("bytes":1e3)"), "values[1].bytes"},
      {with_value(R"("bytes":"1")"), "values[1].bytes"},
      {with_value(R"("bytes":null)"), "values[1].bytes"},
      {with_value(R"("bytes":1,"bytes":1)"), "values[1].bytes"},
      {with_value(R"("bites":1)"), "values[1].bites"},
      {with_value(R"("name":"c")"), "values[1].name"},
      {with_value(R"("output":1)"), "values[1].output"},
      {with_value(R"("shape":[2,-3])"), "values[1].shape[1]"},
      {with_value(R"("shape":[9223372036854775808])"), "values[1].shape[0]"},
      {with_value(R"("shape":3)"), "values[1].shape"},
      {with_value(R"("device":"cuda:0")"), "values[1].device"},
      {with_value(R"("device":0)"), "values[1].device"},
      {with_node(R"("inputs":[])"), "nodes[0].outputs"},
      {with_node(R"("outputs":[])"), "nodes[0].inputs"},
      {with_node(R"("inputs":["a",true],"outputs":[])"), "nodes[0].inputs[1]"},
      {with_node(R"("inputs":[-1],"outputs":[])"), "nodes[0].inputs[0]"},
      {with_node(R"("inputs":["a"],"outputs":["b"],"inplace":[{"input":0}])"), "nodes[0].inplace[0].output"},
      {with_node(R"("inputs":["a"],"outputs":["b"],"views":[{"input":0,"output":4294967296}])"), "nodes[0].views[0].output"},
      {with_node(R"("inputs":["a"],"outputs":["b"],"ignored_inputs":[4294967296])"), "nodes[0].ignored_inputs[0]"},
  };
  for (const Bad& one : bad) {
    EXPECT_ERROR(read_graph_json(one.json, "bad.json"), FormatError, ErrorCode::format_error);
    try {
      read_graph_json(one.json, "bad.json");
    } catch (const Error& error) {
      EXPECT_EQ(error.fact("at"), one.at) << error.what();
      EXPECT_THAT(error.what(), HasSubstr("bad.json"));
    }
  }
}

TEST(GraphJson, RefusesWhatCannotBeAndSaysWhere) {
  const std::tuple<std::string, std::string, ErrorCode> bad[] = {
      {with_value(R"("dtype":"f33")"), "values[1].dtype", ErrorCode::unsupported_dtype},
      {R"({"berth":"graph","values":[{"name":"a"},{"name":"b"},{"name":"a"}],"nodes":[]})", "values[2]", ErrorCode::duplicate_value},
      {with_node(R"("inputs":["c"],"outputs":[])"), "nodes[0].inputs[0]", ErrorCode::undefined_value},
      {with_node(R"("inputs":[""],"outputs":[])"), "nodes[0].inputs[0]", ErrorCode::undefined_value},
      {with_node(R"("inputs":[],"outputs":[null,2])"), "nodes[0].outputs[1]", ErrorCode::out_of_bounds},
      {with_node(R"("inputs":[4294967296],"outputs":[])"), "nodes[0].inputs[0]", ErrorCode::out_of_bounds},
  };
  for (const auto& [json, at, code] : bad) {
    EXPECT_ERROR(read_graph_json(json), ArgumentError, code);
    try {
      read_graph_json(json);
    } catch (const Error& error) {
      EXPECT_EQ(error.fact("at"), at) << error.what();
    }
  }
  std::string dims = "1";
  for (std::size_t i = 0; i < kMaxRank; ++i) dims += ",1";
  EXPECT_ERROR(read_graph_json(with_value(R"("shape":[)" + dims + "]")), ArgumentError, ErrorCode::limit_exceeded);
}

TEST(GraphJson, RefusesGraphsThatCannotRun) {
  EXPECT_ERROR(read_graph_json(with_value(R"("alignment":3)")), ArgumentError, ErrorCode::invalid_alignment);
  EXPECT_ERROR(read_graph_json(with_value(R"("bytes":9223372036854775808)")), ArgumentError, ErrorCode::size_overflow);
  EXPECT_ERROR(read_graph_json(with_value(R"("bytes":5,"dtype":"f32","shape":[1])")), ArgumentError, ErrorCode::size_mismatch);
  EXPECT_ERROR(read_graph_json(with_node(R"("inputs":["b"],"outputs":[])")), ArgumentError, ErrorCode::undefined_value);
  EXPECT_ERROR(read_graph_json(with_node(R"("inputs":["b"],"outputs":["b"])")), ArgumentError, ErrorCode::graph_cycle);
}

// Each error gives the position of the fault, as far as it is known.
TEST(GraphJson, RefusesWhatIsNotJsonAndSaysWhere) {
  const std::pair<std::string, std::string> bad[] = {
      {R"({"berth" "graph"})", "9"},
      {R"({"berth":"graph","values":[1,,2]})", "29"},
      {R"({"berth":"graph","values":[01]})", "27"},
      {R"({"berth":"graph","values":[18446744073709551616]})", "27"},
      {R"({"berth":"graph","values":[tru]})", "27"},
      {R"({"berth":"gr\qph"})", "17"},  // after the string
      {"\xef\xbb\xbf{\"a\":\"b\xff\"}", "10"},
      {R"({"berth":"graph"} more)", "18"},
      {R"({"berth":"graph")", "16"},
      {R"({"berth":"gra)", ""},
      {"", ""},
      {" ", ""},
  };
  for (const auto& [json, offset] : bad) {
    EXPECT_ERROR(read_graph_json(json, "bad.json"), FormatError, ErrorCode::format_error);
    try {
      read_graph_json(json, "bad.json");
    } catch (const Error& error) {
      EXPECT_EQ(error.fact("offset"), offset) << json << "\n" << error.what();
    }
  }
}

TEST(GraphJson, RefusesWhatIsNestedTooDeep) {
  for (const std::size_t depth : {40U, 2000U, 200'000U}) {
    EXPECT_ERROR(read_graph_json(std::string(depth, '[') + std::string(depth, ']')), FormatError, ErrorCode::limit_exceeded);
    std::string objects;
    for (std::size_t i = 0; i < depth; ++i) objects += R"({"a":)";
    EXPECT_ERROR(read_graph_json(objects + '1' + std::string(depth, '}')), FormatError, ErrorCode::limit_exceeded);
  }
}

TEST(ReadGraph, TellsTheFormsApart) {
  EXPECT_EQ(read_graph("\n\n  {\"berth\":\"graph\",\"values\":[{}],\"nodes\":[]}").values.size(), 1U);
  EXPECT_EQ(read_graph("\xef\xbb\xbf{\"berth\":\"graph\",\"values\":[{}],\"nodes\":[]}").values.size(), 1U);
  EXPECT_EQ(read_graph("\r\nupper,lower,id,size\r\n1,0,a|b,8\r\n").values.at(0).name, "a|b");
  EXPECT_EQ(read_graph("# outputs: 0\n0 a | | 8\n").values.at(0).output, true);
  EXPECT_EQ(read_graph("\n 0 a,b | | 8\n").nodes.at(0).op, "a,b");
  for (const char* other : {"", " \n", "\x08\x07\x12", "hello", "[1, 2]"})
    EXPECT_ERROR(read_graph(other), FormatError, ErrorCode::format_error);
}

TEST(ReadGraph, ReadsTheGraphOfAPlan) {
  const Graph graph = read_graph(R"({"berth":"plan","version":1,"plan":{},"graph":{"berth":"graph","values":[{"bytes":7}],"nodes":[]}})");
  EXPECT_EQ(graph.values.at(0).bytes, 7U);
  try {
    read_graph(R"({"berth":"plan","version":1,"plan":{},"graph":{"berth":"graph","values":[{"bytes":-7}],"nodes":[]}})");
    ADD_FAILURE();
  } catch (const FormatError& error) {
    EXPECT_EQ(error.fact("at"), "graph.values[0].bytes");
  }
}

}  // namespace
}  // namespace berth::testing
