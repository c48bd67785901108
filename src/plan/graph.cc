// SPDX-License-Identifier: Apache-2.0
#include "berth/plan/graph.h"

#include <algorithm>
#include <functional>
#include <unordered_set>
#include <utility>

#include "base/allowance.h"
#include "base/radix_sort.h"
#include "base/refuse.h"
#include "base/text.h"
#include "berth/base/checked.h"
#include "berth/base/error.h"
#include "plan/look_ahead.h"

namespace berth {

using namespace internal;

namespace {

constexpr std::size_t kMost = std::size_t{1} << 30;  // of anything counted, so that indices cannot overflow
constexpr NodeId kNobody = UINT32_MAX;

// ---- One check each. All throw.

class Validation {
 public:
  explicit Validation(const Graph& graph) : graph_(graph), writer_(graph.values.size(), kNobody) {}

  void run() {
    check_counts();
    for (ValueId v = 0; v < graph_.values.size(); ++v) {
      base::checkpoint();
      check_value(v);
    }
    check_names();
    for (NodeId n = 0; n < graph_.nodes.size(); ++n) {
      base::checkpoint();
      plan::look_ahead(graph_, n, writer_);
      check_node(n);
    }
    if (!has_early_reads_) return;
    for (NodeId n = 0; n < graph_.nodes.size(); ++n) {
      base::checkpoint();
      check_reads(n);
    }
  }

 private:
  std::string value(ValueId v) const { return graph_.describe_value(v); }
  std::string node(NodeId n) const { return graph_.describe_node(n); }

  static void check_count(std::size_t count, const char* what) {
    if (count > kMost)
      base::refuse(ErrorCode::limit_exceeded, text::join("a graph of ", count, " ", what), text::join("it may have ", kMost),
                   "plan it in parts", {{"count", count}, {"limit", kMost}});
  }

  void check_counts() const {
    constexpr std::size_t kMostDevices = 1024;
    if (graph_.devices.size() > kMostDevices)
      base::refuse(ErrorCode::limit_exceeded, text::join("a graph on ", graph_.devices.size(), " devices"),
                   text::join("it may have ", kMostDevices), "plan it in parts",
                   {{"count", graph_.devices.size()}, {"limit", kMostDevices}});
    check_count(graph_.values.size(), "values");
    check_count(graph_.nodes.size(), "nodes");
  }

  void check_value(ValueId v) const {
    const GraphValue& one = graph_.values[v];
    if (one.device >= graph_.devices.size())
      base::refuse(ErrorCode::out_of_bounds, text::join(value(v), " on device ", one.device),
                   text::join("the graph has ", graph_.devices.size(), " devices"), "add_device gives an index", {{"device", one.device}});
    if (one.alignment != 0 && !is_power_of_two(one.alignment))
      base::refuse(ErrorCode::invalid_alignment, text::join(value(v), " with alignment ", one.alignment), "it is not a power of two",
                   "use one, such as 64", {{"alignment", one.alignment}});
    check_size(v, one);
  }

  void check_size(ValueId v, const GraphValue& one) const {
    if (one.bytes && *one.bytes > kMaxBytes)
      base::refuse(ErrorCode::size_overflow, text::join(value(v), " of ", *one.bytes, " bytes"), "no value can be so large",
                   "check its size", {{"bytes", *one.bytes}});
    if (!one.dtype || !one.shape) return;
    const std::optional<std::size_t> implied = one.shape->try_size_bytes(*one.dtype);
    if (!implied)
      base::refuse(ErrorCode::size_overflow, text::join(value(v), " of shape ", one.shape->to_string()), "its bytes do not fit in 64 bits",
                   "check its shape");
    if (one.bytes && *one.bytes != *implied)
      base::refuse(ErrorCode::size_mismatch, text::join(value(v), " of ", *one.bytes, " bytes"),
                   text::join(to_string(*one.dtype), " ", one.shape->to_string(), " has ", *implied), "leave one of them out",
                   {{"bytes", *one.bytes}, {"implied", *implied}});
  }

  void check_names() const {
    std::unordered_set<std::string_view> devices;
    for (const std::string& device : graph_.devices)
      if (!devices.insert(device).second)
        base::refuse(ErrorCode::duplicate_value, text::join("the device ", text::quoted(device)), "it is there twice",
                     "name each device once");
    if (!may_repeat_names()) return;
    std::unordered_set<std::string_view> names;
    for (ValueId v = 0; v < graph_.values.size(); ++v) {
      const std::string& name = graph_.values[v].name;
      if (!name.empty() && !names.insert(name).second)
        base::refuse(ErrorCode::duplicate_value, value(v), "another value has that name", "give each its own",
                     {{"value", text::printable(name)}});
    }
  }

  // Most graphs have no duplicate, and then no two names have the same hash: a list of hashes is faster and smaller
  // than a set of names.
  bool may_repeat_names() const {
    std::vector<std::size_t> hashes;
    hashes.reserve(graph_.values.size());
    for (const GraphValue& one : graph_.values)
      if (!one.name.empty()) hashes.push_back(std::hash<std::string_view>()(one.name));
    base::checkpoint_now();
    return base::have_repeats(std::move(hashes));
  }

  void check_node(NodeId n) {
    const GraphNode& one = graph_.nodes[n];
    arguments_ += one.inputs.size() + one.outputs.size();
    check_count(arguments_, "inputs and outputs");
    for (const ValueId v : one.inputs) {
      check_known(n, v, "input");
      has_early_reads_ |= v != kNoValue && writer_[v] == kNobody;
    }
    for (const ValueId v : one.outputs) {
      check_known(n, v, "output");
      if (v == kNoValue) continue;
      if (writer_[v] != kNobody)
        base::refuse(ErrorCode::duplicate_value, value(v), text::join("both ", node(writer_[v]), " and ", node(n), " write it"),
                     "write a value once", {{"value", text::printable(graph_.values[v].name)}});
      writer_[v] = n;
    }
    for (const std::uint32_t position : one.ignored_inputs) check_position(n, position, one.inputs, "ignored input");
    for (const InplaceOption& option : one.inplace) check_positions(n, option.output, option.input, "an in-place option");
    for (const ViewOption& option : one.views) check_view(n, option);
  }

  void check_known(NodeId n, ValueId v, const char* what) const {
    if (v == kNoValue || v < graph_.values.size()) return;
    base::refuse(ErrorCode::out_of_bounds, text::join(node(n), " with ", what, " number ", v),
                 text::join("the graph has ", graph_.values.size(), " values"), "add_value gives a number", {{"value", v}});
  }

  void check_position(NodeId n, std::uint32_t position, const std::vector<ValueId>& list, std::string_view what) const {
    if (position < list.size() && list[position] != kNoValue) return;
    base::refuse(ErrorCode::out_of_bounds, text::join(node(n), " with ", what, " ", position),
                 position < list.size() ? std::string("it is left out") : text::join("there are ", list.size()),
                 "name a position that is there", {{"position", position}});
  }

  void check_positions(NodeId n, std::uint32_t output, std::uint32_t input, std::string_view what) const {
    check_position(n, output, graph_.nodes[n].outputs, text::join(what, " for output"));
    check_position(n, input, graph_.nodes[n].inputs, text::join(what, " for input"));
  }

  void check_view(NodeId n, const ViewOption& option) const {
    check_positions(n, option.output, option.input, "a view");
    const ValueId output = graph_.nodes[n].outputs[option.output];
    const ValueId input = graph_.nodes[n].inputs[option.input];
    const ValueId whole = option.of_input ? input : output;
    const ValueId part = option.of_input ? output : input;
    const auto whole_bytes = graph_.values[whole].size_bytes();
    const auto part_bytes = graph_.values[part].size_bytes();
    if (whole_bytes && part_bytes && !fits(option.offset_bytes, *part_bytes, *whole_bytes))
      base::refuse(ErrorCode::out_of_bounds,
                   text::join(node(n), " with ", value(part), " of ", *part_bytes, " bytes at ", option.offset_bytes, " in ", value(whole)),
                   text::join("that has ", *whole_bytes), "keep the view inside", {{"offset", option.offset_bytes}});
  }

  void check_reads(NodeId n) const {
    for (const ValueId v : graph_.nodes[n].inputs) {
      if (v == kNoValue) continue;
      if (writer_[v] == kNobody && !graph_.values[v].external)
        base::refuse(ErrorCode::undefined_value, text::join(node(n), " reads ", value(v)), "no node writes it",
                     "mark it external if it lives elsewhere", {{"value", text::printable(graph_.values[v].name)}});
      if (writer_[v] != kNobody && writer_[v] >= n) refuse_order(n, v);
    }
  }

  // `n` reads `v` too early: because of a cycle, or because the order is not topological.
  [[noreturn]] void refuse_order(NodeId n, ValueId v) const {
    const std::vector<NodeId> circle = find_circle();
    if (circle.empty())
      base::refuse(ErrorCode::undefined_value, text::join(node(n), " reads ", value(v)),
                   text::join("only ", node(writer_[v]), ", later, writes it"), "put the nodes into an order in which they can run",
                   {{"value", text::printable(graph_.values[v].name)}});
    std::string names;
    for (std::size_t i = 0; i < circle.size() && i < 8; ++i) names += (i == 0 ? "" : ", ") + node(circle[i]);
    if (circle.size() > 8) names += ", …";
    base::refuse(ErrorCode::graph_cycle, text::join("a graph with ", names), "each waits for the one before, and the first for the last",
                 "break the cycle", {{"nodes", names}});
  }

  // Finds a cycle by depth-first search: nodes that wait for one another, each for the one before it; empty
  // when there is none.
  std::vector<NodeId> find_circle() const {
    enum : std::uint8_t { unseen, open, closed };
    std::vector<std::uint8_t> state(graph_.nodes.size(), unseen);
    struct Visit {
      NodeId node;
      std::size_t next = 0;
    };
    std::vector<Visit> path;
    for (NodeId start = 0; start < graph_.nodes.size(); ++start) {
      if (state[start] != unseen) continue;
      path.push_back({start});
      state[start] = open;
      while (!path.empty()) {
        Visit& top = path.back();
        const std::vector<ValueId>& inputs = graph_.nodes[top.node].inputs;
        if (top.next == inputs.size()) {
          state[top.node] = closed;
          path.pop_back();
          continue;
        }
        const ValueId v = inputs[top.next++];
        const NodeId before = v == kNoValue ? kNobody : writer_[v];
        if (before == kNobody || state[before] == closed) continue;
        if (state[before] == open) {
          std::vector<NodeId> circle;
          for (auto visit = path.rbegin(); visit != path.rend(); ++visit) {
            circle.push_back(visit->node);
            if (visit->node == before) break;
          }
          return circle;
        }
        state[before] = open;
        path.push_back({before});
      }
    }
    return {};
  }

  const Graph& graph_;
  std::vector<NodeId> writer_;    // of each value
  std::size_t arguments_ = 0;     // of the nodes so far
  bool has_early_reads_ = false;  // of values that no node before has written, as those that are external
};

std::string described(std::string_view kind, std::string_view name, std::uint32_t number) {
  return name.empty() ? text::join(kind, " ", number) : text::join(kind, " ", text::quoted(name));
}

}  // namespace

ValueId Graph::add_value(GraphValue value) {
  values.push_back(std::move(value));
  return static_cast<ValueId>(values.size() - 1);
}

NodeId Graph::add_node(GraphNode node) {
  nodes.push_back(std::move(node));
  return static_cast<NodeId>(nodes.size() - 1);
}

std::uint32_t Graph::add_device(std::string_view device) {
  auto at = std::find(devices.begin(), devices.end(), device);
  if (at == devices.end()) at = devices.insert(at, std::string(device));
  return static_cast<std::uint32_t>(at - devices.begin());
}

ValueId Graph::find(std::string_view value_name) const {
  for (ValueId v = 0; v < values.size(); ++v)
    if (values[v].name == value_name) return v;
  base::refuse(ErrorCode::undefined_value, text::join("the value ", text::quoted(value_name)), "the graph has none of that name",
               "look at Graph::values", {{"value", text::printable(value_name)}});
}

std::string Graph::describe_value(ValueId value) const {
  return described("value", value < values.size() ? values[value].name : std::string_view(), value);
}

std::string Graph::describe_node(NodeId node) const {
  if (node >= nodes.size() || !nodes[node].name.empty() || nodes[node].op.empty())
    return described("node", node < nodes.size() ? nodes[node].name : std::string_view(), node);
  return text::join("node ", node, " (", text::printable(nodes[node].op), ")");
}

void Graph::validate() const { Validation(*this).run(); }

}  // namespace berth
