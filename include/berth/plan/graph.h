// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/dtype.h"
#include "berth/base/shape.h"
#include "berth/export.h"

// The graph that a plan is made for: nodes in the order in which they run, and the values they read and write. Plain data, built in code
// or by a reader (plan/read_graph.h, plan/onnx.h), and changed freely until it is planned:
//
//     Graph graph;
//     ValueId x = graph.add_value({.name = "x", .bytes = 4096, .external = true});
//     ValueId a = graph.add_value({.name = "a", .dtype = DType::f32, .shape = Shape{32, 32}});
//     ValueId y = graph.add_value({.name = "y", .bytes = 4096, .output = true});
//     graph.add_node({.op = "MatMul", .inputs = {x, x}, .outputs = {a}});
//     graph.add_node({.op = "Relu", .inputs = {a}, .outputs = {y}, .inplace = {{.output = 0, .input = 0}}});
//     Plan p = plan(graph);                                             // plan/plan.h
namespace berth {

using ValueId = std::uint32_t;  // an index into Graph::values
using NodeId = std::uint32_t;   // an index into Graph::nodes

// In the place of an input or output that is left out.
inline constexpr ValueId kNoValue = UINT32_MAX;

// One value. Its size is `bytes`, or that of dtype and shape, or unknown: then it is not planned. Both may be given if they agree.
struct GraphValue {
  std::string name = {};  // for people and files; no two values have the same, but for the empty one
  std::optional<std::size_t> bytes = {};
  std::optional<DType> dtype = {};
  std::optional<Shape> shape = {};
  std::uint32_t device = 0;   // an index into Graph::devices
  std::size_t alignment = 0;  // a power of two; 0: that of the dtype, or 1 when there is none
  bool external = false;      // lives elsewhere (inputs, weights) and gets no place
  bool dynamic = false;       // its size is known only when it runs: gets no place
  bool output = false;        // is read after the last node

  // Where it must lie in its device's arena, and where it would be best. A place that is asked for is kept even if that makes the arena
  // larger; a wish is granted only where it costs nothing.
  std::optional<std::size_t> fixed_offset = {};
  std::optional<std::size_t> preferred_offset = {};

  // Nothing when it is unknown, or too large for 64 bits (which `validate` refuses).
  std::optional<std::size_t> size_bytes() const noexcept {
    if (bytes) return bytes;
    return dtype && shape ? shape->try_size_bytes(*dtype) : std::nullopt;
  }
};

// What a node allows for one of its outputs; `output` and `input` are positions in the node's lists. The planner takes an option only where it is
// safe; `Plan::place` says which it took. Where it took none the output has bytes of its own, and the node copies.
struct InplaceOption {
  std::uint32_t output = 0;
  std::uint32_t input = 0;
  bool identity = false;  // the output has the very bytes of the input, so that others may go on reading them
};

// One is a range of the other, `offset_bytes` from its start. With `of_input` the output is a range of the input, as when splitting; without,
// the input is a range of the output, as when joining: it is then written there in the first place.
struct ViewOption {
  std::uint32_t output = 0;
  std::uint32_t input = 0;
  std::size_t offset_bytes = 0;
  bool of_input = true;
};

// One step. All inputs are read and all outputs written while it runs, so that none of them may share bytes but by an option.
struct GraphNode {
  std::string name = {};
  std::string op = {};
  std::vector<ValueId> inputs = {};                // kNoValue: left out
  std::vector<ValueId> outputs = {};               // kNoValue: left out
  std::vector<std::uint32_t> ignored_inputs = {};  // positions of inputs that are named and never read
  std::vector<InplaceOption> inplace = {};
  std::vector<ViewOption> views = {};

  // It does something beside writing its outputs: sends, prints, draws random numbers. Nodes with side effects keep their order among one
  // another when a plan changes the order of nodes; they run once, and are never run again to make a value anew.
  bool side_effects = false;
};

// Half open.
struct NodeRange {
  NodeId begin = 0;
  NodeId end = 0;

  friend bool operator==(const NodeRange&, const NodeRange&) = default;
};

struct BERTH_EXPORT Graph {
  std::string name = {};
  std::vector<std::string> devices = {"cpu:0"};
  std::vector<GraphValue> values = {};
  std::vector<GraphNode> nodes = {};

  ValueId add_value(GraphValue value);
  NodeId add_node(GraphNode node);
  std::uint32_t add_device(std::string_view device);  // its index; a new one when there is none of that name

  // By name, in linear time. Throws ArgumentError(undefined_value).
  ValueId find(std::string_view value_name) const;

  // How a value and a node are called in messages: by name, or by number when they have none.
  std::string describe_value(ValueId value) const;
  std::string describe_node(NodeId node) const;

  // Every node can run in the order given, and every option names what is there. Throws ArgumentError that names the culprit: graph_cycle,
  // undefined_value (read before it is written, or never written and not external), duplicate_value (a name given twice, a value written
  // twice), out_of_bounds (an index, an option's position, a view outside its whole), invalid_alignment, size_mismatch, size_overflow,
  // limit_exceeded (more than 2³⁰ values, nodes or inputs, or 1,024 devices).
  void validate() const;
};

}  // namespace berth
