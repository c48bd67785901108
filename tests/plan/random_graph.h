// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/random.h"
#include "berth/plan/plan.h"

// Graphs of every kind that a planner can meet: values that are external, dynamic, of no bytes or of unknown
// size, on two devices; in-place, identity, view and join options; inputs that are ignored, left out, or given
// twice; outputs without a reader.
namespace berth::testing {

using namespace internal::base;

class RandomGraph {
 public:
  explicit RandomGraph(Random& random, std::size_t most_nodes = 16) : random_(random), most_nodes_(most_nodes) {}

  Graph make() {
    graph_.devices = {"cpu:0"};
    if (random_.one_in(3)) graph_.devices.emplace_back("sim:0");
    for (std::uint64_t i = random_.below(3); i > 0; --i) ready_.push_back(add_value(true));
    const std::uint64_t nodes = 1 + random_.below(most_nodes_);
    for (std::uint64_t i = 0; i < nodes; ++i) add_node();
    return std::move(graph_);
  }

 private:
  static constexpr std::size_t kSizes[] = {0, 4, 8, 16, 16, 16, 24, 32, 32, 64, 100};

  ValueId add_value(bool external) {
    GraphValue value{.name = "v" + std::to_string(graph_.values.size())};
    value.external = external || random_.one_in(20);
    value.dynamic = random_.one_in(20);
    value.output = random_.one_in(8);
    value.device = static_cast<std::uint32_t>(random_.below(graph_.devices.size()));
    if (!random_.one_in(20)) value.bytes = kSizes[random_.below(std::size(kSizes))];
    if (random_.one_in(6)) value.alignment = std::size_t{1} << random_.below(7);
    if (value.bytes && *value.bytes % 4 == 0 && random_.one_in(3)) {
      value.dtype = random_.one_in(4) ? DType::f16 : random_.one_in(3) ? DType::i32 : DType::f32;
      value.shape = Shape{static_cast<std::int64_t>(*value.bytes / size_bytes(*value.dtype))};
    }
    return graph_.add_value(std::move(value));
  }

  void add_node() {
    GraphNode node{.name = "n" + std::to_string(graph_.nodes.size())};
    for (std::uint64_t i = random_.below(4); i > 0; --i) {
      // Mostly recent values, because reuse happens in chains.
      const std::size_t back = std::min<std::size_t>(ready_.size(), random_.one_in(4) ? ready_.size() : 3);
      if (back != 0) node.inputs.push_back(random_.one_in(20) ? kNoValue : ready_[ready_.size() - 1 - random_.below(back)]);
    }
    for (std::uint64_t i = random_.below(3) + (random_.one_in(10) ? 0 : 1); i > 0; --i)
      node.outputs.push_back(random_.one_in(20) ? kNoValue : add_value(false));
    for (std::uint32_t i = 0; i < node.inputs.size(); ++i)
      if (node.inputs[i] != kNoValue && random_.one_in(10)) node.ignored_inputs.push_back(i);
    add_options(node);
    for (const ValueId v : node.outputs)
      if (v != kNoValue) ready_.push_back(v);
    graph_.add_node(std::move(node));
  }

  void add_options(GraphNode& node) {
    for (std::uint32_t o = 0; o < node.outputs.size(); ++o) {
      if (node.outputs[o] != kNoValue && !node.inputs.empty() && random_.one_in(2))
        if (const ValueId input = node.inputs[random_.below(node.inputs.size())]; input != kNoValue)
          like(graph_.values[node.outputs[o]], graph_.values[input]);
      for (std::uint32_t i = 0; i < node.inputs.size(); ++i) {
        if (node.outputs[o] == kNoValue || node.inputs[i] == kNoValue) continue;
        const GraphValue& output = graph_.values[node.outputs[o]];
        const GraphValue& input = graph_.values[node.inputs[i]];
        if (random_.one_in(2)) {
          node.inplace.push_back({o, i, random_.one_in(3)});
        } else if (output.bytes && input.bytes && random_.one_in(2)) {
          const bool of_input = *output.bytes < *input.bytes;
          const std::size_t room = of_input ? *input.bytes - *output.bytes : *output.bytes - *input.bytes;
          node.views.push_back({o, i, random_.below(room / 4 + 1) * 4, of_input});
        }
      }
    }
  }

  static void like(GraphValue& output, const GraphValue& input) {
    output.bytes = input.bytes;
    output.dtype = input.dtype;
    output.shape = input.shape;
    output.device = input.device;
  }

  Random& random_;
  const std::size_t most_nodes_;
  Graph graph_;
  std::vector<ValueId> ready_;  // values that a node may read
};

inline Graph random_graph(Random& random, std::size_t most_nodes = 16) { return RandomGraph(random, most_nodes).make(); }

// A random order that respects the graph and the plan's edges.
inline std::vector<NodeId> random_order(Random& random, const Plan& plan) {
  const NodeRange& nodes = plan.tables().nodes;
  std::vector<std::vector<NodeId>> after(nodes.end);
  std::vector<std::size_t> waits(nodes.end, 0);
  const auto wait = [&](NodeId before, NodeId node) {
    after[before].push_back(node);
    ++waits[node];
  };
  std::vector<NodeId> writer(plan.graph().values.size(), UINT32_MAX);
  for (NodeId n = nodes.begin; n < nodes.end; ++n) {
    const GraphNode& node = plan.graph().nodes[n];
    for (std::uint32_t i = 0; i < node.inputs.size(); ++i) {
      const bool ignored = std::count(node.ignored_inputs.begin(), node.ignored_inputs.end(), i) != 0;
      if (node.inputs[i] != kNoValue && !ignored && writer[node.inputs[i]] != UINT32_MAX) wait(writer[node.inputs[i]], n);
    }
    for (const ValueId v : node.outputs)
      if (v != kNoValue) writer[v] = n;
  }
  for (const PlanEdge& edge : plan.tables().edges) wait(edge.before, edge.after);
  std::vector<NodeId> ready;
  std::vector<NodeId> order;
  for (NodeId n = nodes.begin; n < nodes.end; ++n)
    if (waits[n] == 0) ready.push_back(n);
  while (!ready.empty()) {
    std::swap(ready[random.below(ready.size())], ready.back());
    order.push_back(ready.back());
    ready.pop_back();
    for (const NodeId next : after[order.back()])
      if (--waits[next] == 0) ready.push_back(next);
  }
  return order;
}

}  // namespace berth::testing
