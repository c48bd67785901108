// SPDX-License-Identifier: Apache-2.0
#include "plan/budget/gaps.h"

#include <algorithm>
#include <optional>

#include "plan/lives.h"

namespace berth::internal::plan {

namespace {

constexpr std::size_t kMostAgain = 4;  // nodes to recompute for one value
constexpr double kMoveWeight = 8;      // cost of a byte moved, relative to one read or written on the device

class GapFinder {
 public:
  GapFinder(const Plan& plan, const BudgetOptions& options)
      : plan_(plan), graph_(plan.graph()), options_(options), writer_(graph_.values.size(), UINT32_MAX), uses_(graph_.values.size()) {
    for (NodeId n = 0; n < graph_.nodes.size(); ++n) {
      const GraphNode& node = graph_.nodes[n];
      for (std::size_t i = 0; i < node.inputs.size(); ++i)
        if (const ValueId v = node.inputs[i]; v != kNoValue && !is_ignored(node, i) && (uses_[v].empty() || uses_[v].back() != n))
          uses_[v].push_back(n);
      for (const ValueId v : node.outputs)
        if (v != kNoValue) {
          writer_[v] = n;
          uses_[v].push_back(n);
        }
    }
    for (ValueId v = 0; v < uses_.size(); ++v)
      if (graph_.values[v].output) uses_[v].push_back(static_cast<NodeId>(graph_.nodes.size()));
    std::uint32_t buffers = 0;
    for (const ValueLocation& location : plan.tables().locations)
      if (location.planned()) buffers = std::max(buffers, location.buffer + 1);
    values_of_.resize(buffers);
    for (ValueId v = 0; v < uses_.size(); ++v)
      if (plan.location(v).planned()) values_of_[plan.location(v).buffer].push_back(v);
  }

  std::vector<Gap> run() {
    for (ValueId v = 0; v < uses_.size(); ++v) {
      const GraphValue& value = graph_.values[v];
      const ValueLocation& location = plan_.location(v);
      if (!location.planned() || location.extent_bytes == 0 || value.device != options_.device || value.fixed_offset) continue;
      for (std::size_t i = 0; i + 1 < uses_[v].size(); ++i) {
        const NodeId after = uses_[v][i];
        const NodeId before = uses_[v][i + 1];
        if (before > after + 1 && is_alone(v, after, before)) add(v, after, before);
      }
    }
    return std::move(gaps_);
  }

 private:
  // No other value of its buffer is live during the gap.
  bool is_alone(ValueId v, NodeId after, NodeId before) const {
    const std::vector<ValueId>& others = values_of_[plan_.location(v).buffer];
    return std::none_of(others.begin(), others.end(), [&](ValueId other) {
      const NodeRange life = plan_.life(other);
      return other != v && life.begin < before && life.end > after + 1;
    });
  }

  void add(ValueId v, NodeId after, NodeId before) {
    const std::size_t bytes = plan_.location(v).extent_bytes;
    const auto size = static_cast<double>(bytes);
    gaps_.push_back({{BudgetItem::Kind::move, v, after, before, {}, bytes, 2 * size / options_.bandwidth}, 2 * kMoveWeight * size});
    std::vector<NodeId> again;
    if (!gather_again(v, before, again)) return;
    std::sort(again.begin(), again.end());
    double work = 0;
    for (const NodeId n : again) work += work_of(graph_.nodes[n]);
    gaps_.push_back({{BudgetItem::Kind::recompute, v, after, before, std::move(again), bytes, 0}, work});
  }

  // The nodes to run before a node in order to recompute a value, from values that are live there anyway.
  bool gather_again(ValueId v, NodeId before, std::vector<NodeId>& again) const {
    const NodeId n = writer_[v];
    if (std::find(again.begin(), again.end(), n) != again.end()) return true;
    const GraphNode& node = graph_.nodes[n];
    if (node.side_effects || again.size() == kMostAgain) return false;
    again.push_back(n);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId input = node.inputs[i];
      if (input == kNoValue || is_there(input, before)) continue;
      if (!gather_again(input, before, again)) return false;
    }
    return true;
  }

  bool is_there(ValueId v, NodeId before) const {
    return writer_[v] == UINT32_MAX || !plan_.location(v).planned() || uses_[v].back() >= before;
  }

  double work_of(const GraphNode& node) const {
    double bytes = 1;  // no node is free
    for (const ValueId v : node.inputs)
      if (v != kNoValue) bytes += static_cast<double>(graph_.values[v].size_bytes().value_or(0));
    for (const ValueId v : node.outputs)
      if (v != kNoValue) bytes += static_cast<double>(graph_.values[v].size_bytes().value_or(0));
    return bytes;
  }

  const Plan& plan_;
  const Graph& graph_;
  const BudgetOptions& options_;
  std::vector<NodeId> writer_;
  // Of each value: its writer, its readers, and the end when it is an output.
  std::vector<std::vector<NodeId>> uses_;
  std::vector<std::vector<ValueId>> values_of_;  // of each buffer
  std::vector<Gap> gaps_;
};

}  // namespace

std::vector<Gap> find_gaps(const Plan& plan, const BudgetOptions& options) { return GapFinder(plan, options).run(); }

std::size_t least_of_nodes(const Plan& plan, std::uint32_t device) {
  const Graph& graph = plan.graph();
  // An output with an option may reuse other bytes in some plan; every other value has bytes of its own in all
  // of them.
  std::vector<bool> counts(graph.values.size(), false);
  for (ValueId v = 0; v < counts.size(); ++v) counts[v] = plan.location(v).planned() && graph.values[v].device == device;
  for (const GraphNode& node : graph.nodes) {
    for (const InplaceOption& option : node.inplace) counts[node.outputs[option.output]] = false;
    for (const ViewOption& option : node.views) counts[node.outputs[option.output]] = false;
  }
  std::size_t most = 0;
  for (ValueId v = 0; v < counts.size(); ++v) most += counts[v] && graph.values[v].output ? plan.location(v).extent_bytes : 0;
  for (const GraphNode& node : graph.nodes) {
    std::vector<ValueId> needed;
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (const ValueId v = node.inputs[i]; v != kNoValue && counts[v] && !is_ignored(node, i)) needed.push_back(v);
    for (const ValueId v : node.outputs)
      if (v != kNoValue && counts[v]) needed.push_back(v);
    std::sort(needed.begin(), needed.end());
    needed.erase(std::unique(needed.begin(), needed.end()), needed.end());
    std::size_t sum = 0;
    for (const ValueId v : needed) sum += plan.location(v).extent_bytes;
    most = std::max(most, sum);
  }
  return most;
}

}  // namespace berth::internal::plan
