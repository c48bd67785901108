// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/plan/onnx.h"
#include "cli/samples/model_writer.h"

// Shortcuts for tests that write ONNX models and inspect what is read back. The writer itself is
// cli/samples/model_writer.h.
namespace berth::testing {

using namespace internal::cli::samples;
using namespace internal::plan::onnx;

inline const GraphValue* find_value(const OnnxModel& model, std::string_view name) {
  const auto found = std::ranges::find(model.graph.values, name, &GraphValue::name);
  return found == model.graph.values.end() ? nullptr : &*found;
}

// "f32 [2, 3]", or "?" when it is not known, or "none" when there is no such value.
inline std::string shape_of(const OnnxModel& model, std::string_view name) {
  const GraphValue* const value = find_value(model, name);
  if (value == nullptr) return "none";
  if (!value->shape) return "?";
  return (value->dtype ? std::string(to_string(*value->dtype)) : std::to_string(value->bytes.value_or(0)) + " bytes") + " " +
         value->shape->to_string();
}

// The first node of an operator.
inline const GraphNode& node_of(const OnnxModel& model, std::string_view op) {
  static const GraphNode none;
  const auto found = std::ranges::find(model.graph.nodes, op, &GraphNode::op);
  return found == model.graph.nodes.end() ? none : *found;
}

// The names of the values that a node reads; "-" for an input that is left out.
inline std::vector<std::string> names_of(const OnnxModel& model, const std::vector<ValueId>& values) {
  std::vector<std::string> names;
  for (const ValueId value : values) names.push_back(value == kNoValue ? "-" : model.graph.values[value].name);
  return names;
}

// An input of a node under test: a value of the graph, or a constant.
struct TestInput {
  enum class Kind { left_out, value, constant } kind = Kind::left_out;
  std::int64_t elem = 0;
  WrittenShape shape = {};
  std::string tensor = {};  // of a constant, without a name
};

inline TestInput f32(WrittenShape shape) { return {TestInput::Kind::value, kFloat, std::move(shape), {}}; }
inline TestInput typed(std::int64_t elem, WrittenShape shape) { return {TestInput::Kind::value, elem, std::move(shape), {}}; }
inline TestInput i64(std::vector<std::int64_t> list) { return {TestInput::Kind::constant, 0, {}, int_list("", list)}; }
inline TestInput i64_scalar(std::int64_t value) { return {TestInput::Kind::constant, 0, {}, int_scalar("", value)}; }
inline TestInput floats(std::vector<float> list) { return {TestInput::Kind::constant, 0, {}, float_list("", list)}; }
inline TestInput left_out() { return {}; }

// A model of one node, with the inputs i0, i1, … and the outputs o0, o1, …
inline std::string one_node(std::string_view op, const std::vector<TestInput>& inputs, std::vector<std::string> attributes = {},
                            std::size_t outputs = 1, std::int64_t opset = 21) {
  GraphWriter graph("one node");
  std::vector<std::string> in;
  std::vector<std::string> out;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::string name = "i" + std::to_string(i);
    const bool there = inputs[i].kind != TestInput::Kind::left_out;
    if (inputs[i].kind == TestInput::Kind::value) graph.input(name, inputs[i].elem, inputs[i].shape);
    // The last name wins when a tensor has two: the constant's own is empty.
    if (inputs[i].kind == TestInput::Kind::constant) graph.initializer(inputs[i].tensor + "\x42" + static_cast<char>(name.size()) + name);
    in.push_back(there ? name : "");
  }
  for (std::size_t i = 0; i < outputs; ++i) {
    out.push_back("o" + std::to_string(i));
    graph.output(out.back(), 0);
  }
  graph.node(op, std::move(in), std::move(out), std::move(attributes));
  return graph.model(opset, 10);
}

// One line of a table of rules. The expected outputs are written as shape_of returns them.
struct RuleRow {
  const char* op;
  std::int64_t opset;
  std::vector<TestInput> inputs;
  std::vector<std::string> attributes;
  std::vector<std::string> expected;
};

inline void expect_rows(const std::vector<RuleRow>& rows) {
  for (const RuleRow& row : rows) {
    const std::string bytes = one_node(row.op, row.inputs, row.attributes, row.expected.size(), row.opset);
    const OnnxModel model = read_onnx(bytes, {.allow_unknown = true});
    std::vector<std::string> shapes;
    for (std::size_t i = 0; i < row.expected.size(); ++i) shapes.push_back(shape_of(model, "o" + std::to_string(i)));
    EXPECT_EQ(shapes, row.expected) << row.op << ", row " << &row - rows.data();
  }
}

}  // namespace berth::testing
