// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/dtype.h"
#include "berth/base/json.h"
#include "berth/base/shape.h"
#include "berth/export.h"

// The graph that a plan is made for: nodes in execution order, and the values they read and write. Plain data,
// built in code or by a reader (plan/read_graph.h, plan/onnx.h), and changed freely until it is planned. Not
// synchronized: concurrent reads are safe, changes are not.
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

// Stands for an input or output that is left out.
inline constexpr ValueId kNoValue = UINT32_MAX;

// One value. Its size is `bytes`, or that of dtype and shape, or unknown; a value of unknown size is not
// planned. Both may be given if they agree.
struct GraphValue {
  std::string name = {};  // for messages and files; unique unless empty
  std::optional<std::size_t> bytes = {};
  std::optional<DType> dtype = {};
  std::optional<Shape> shape = {};
  std::uint32_t device = 0;   // an index into Graph::devices
  std::size_t alignment = 0;  // a power of two; 0: that of the dtype, or 1 when there is none
  bool external = false;      // its memory is elsewhere (inputs, weights): gets no location
  bool dynamic = false;       // its size is known only at run time: gets no location
  bool output = false;        // read after the last node

  // The offset that it must have in its device's arena, and the one that it prefers. A fixed offset is kept
  // even if that makes the arena larger; a preferred offset is granted only where it costs nothing.
  std::optional<std::size_t> fixed_offset = {};
  std::optional<std::size_t> preferred_offset = {};

  // Nothing when the size is unknown, or too large for 64 bits (which `validate` refuses).
  std::optional<std::size_t> size_bytes() const noexcept {
    if (bytes) return bytes;
    return dtype && shape ? shape->try_size_bytes(*dtype) : std::nullopt;
  }
  friend bool operator==(const GraphValue&, const GraphValue&) = default;
};

// An output that a node may write in place of an input; `output` and `input` are positions in the node's lists.
// The planner takes an option only where it is safe; `Plan::location` says which it took. Where it took none,
// the output has bytes of its own, and the node copies.
struct InplaceOption {
  std::uint32_t output = 0;
  std::uint32_t input = 0;
  bool identity = false;  // the output is the input, unchanged: other nodes may go on reading it
  friend bool operator==(const InplaceOption&, const InplaceOption&) = default;
};

// A view: one value is a range of the other, `offset_bytes` from its start. With `of_input` the output is a
// range of the input, as in a split; without it the input is a range of the output, as in a concatenation, and
// is written there from the start.
struct ViewOption {
  std::uint32_t output = 0;
  std::uint32_t input = 0;
  std::size_t offset_bytes = 0;
  bool of_input = true;
  friend bool operator==(const ViewOption&, const ViewOption&) = default;
};

// One step. All inputs are read and all outputs written while it runs, so none of them may overlap except by an
// option.
struct GraphNode {
  std::string name = {};
  std::string op = {};
  std::vector<ValueId> inputs = {};                // kNoValue: left out
  std::vector<ValueId> outputs = {};               // kNoValue: left out
  std::vector<std::uint32_t> ignored_inputs = {};  // positions of inputs that the node names but never reads
  std::vector<InplaceOption> inplace = {};
  std::vector<ViewOption> views = {};

  // The node does more than write its outputs: it sends, prints, draws random numbers. Nodes with side effects
  // keep their order among one another when a plan reorders nodes; they run once, and are never recomputed.
  bool side_effects = false;

  // How long it takes, in a unit of the caller's: the longest path of a parallel plan is measured in it.
  std::uint64_t cost = 1;

  friend bool operator==(const GraphNode&, const GraphNode&) = default;
};

// Half-open: [begin, end).
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
  friend bool operator==(const Graph&, const Graph&) = default;

  ValueId add_value(GraphValue value);
  NodeId add_node(GraphNode node);
  std::uint32_t add_device(std::string_view device);  // returns its index; adds the device if it is not there

  // Finds a value by name, in linear time. Throws ArgumentError(undefined_value).
  ValueId find(std::string_view value_name) const;

  // The name of a value or a node in messages: its own, or its number when it has none.
  std::string describe_value(ValueId value) const;
  std::string describe_node(NodeId node) const;

  // Accepts a graph whose nodes are in a topological order and whose options refer to existing values. Throws
  // ArgumentError that names the culprit: graph_cycle, undefined_value (read before it is written, or never
  // written and not external), duplicate_value (a name given twice, a value written twice), out_of_bounds (an
  // index, an option's position, a view outside its whole), invalid_alignment, size_mismatch, size_overflow,
  // limit_exceeded (more than 2³⁰ values, nodes or inputs, or 1,024 devices).
  void validate() const;

  // Writes the format that read_graph_json reads, as one object. Throws as validate() does, so that what is
  // written can be read again.
  void write_json(JsonWriter& json) const;
};

}  // namespace berth
