// SPDX-License-Identifier: Apache-2.0
#include "plan/order.h"

#include <algorithm>
#include <map>

#include "base/allowance.h"
#include "plan/lives.h"

namespace berth::internal::plan {

namespace {

constexpr NodeId kNobody = UINT32_MAX;

std::vector<NodeId> writers(const Graph& graph, NodeRange nodes) {
  std::vector<NodeId> writer(graph.values.size(), kNobody);
  for (NodeId n = nodes.begin; n < nodes.end; ++n)
    for (const ValueId v : graph.nodes[n].outputs)
      if (v != kNoValue) writer[v] = n;
  return writer;
}

// Calls see(before) for every direct predecessor of a node.
template <class See>
void for_each_before(const GraphNode& node, const std::vector<NodeId>& writer, See see) {
  for (std::size_t i = 0; i < node.inputs.size(); ++i)
    if (const ValueId v = node.inputs[i]; v != kNoValue && writer[v] != kNobody && !is_ignored(node, i)) see(writer[v]);
}

// The happens-before relation: a bit set of the ancestors of each node, filled from the first node to the last.
class Ancestors {
 public:
  explicit Ancestors(NodeRange nodes) : first_(nodes.begin), rows_(nodes.end - nodes.begin) {
    for (std::size_t row = 0; row < rows_.size(); ++row) rows_[row].resize(row / 64 + 1);
  }

  bool has(NodeId node, NodeId before) const {
    const NodeId bit = before - first_;
    return (rows_[node - first_][bit / 64] >> (bit % 64) & 1) != 0;
  }

  // Adds a predecessor and all its ancestors.
  void add(NodeId node, NodeId before) {
    std::vector<std::uint64_t>& row = rows_[node - first_];
    const std::vector<std::uint64_t>& other = rows_[before - first_];
    for (std::size_t word = 0; word < other.size(); ++word) row[word] |= other[word];
    const NodeId bit = before - first_;
    row[bit / 64] |= std::uint64_t{1} << (bit % 64);
  }

 private:
  NodeId first_;
  std::vector<std::vector<std::uint64_t>> rows_;
};

// The nodes that have used each byte range of an arena since its last write, the writer included.
class Users {
 public:
  void use(NodeId node, std::size_t begin, std::size_t end) {
    cut(begin);
    cut(end);
    for (auto at = ranges_.lower_bound(begin); at != ranges_.end() && at->first < end; ++at)
      if (at->second.users.back() != node) at->second.users.push_back(node);
  }

  // Appends the previous users of the range to `users`.
  void write(NodeId node, std::size_t begin, std::size_t end, std::vector<NodeId>& users) {
    cut(begin);
    cut(end);
    auto at = ranges_.lower_bound(begin);
    while (at != ranges_.end() && at->first < end) {
      users.insert(users.end(), at->second.users.begin(), at->second.users.end());
      at = ranges_.erase(at);
    }
    ranges_.emplace_hint(at, begin, Range{end, {node}});
  }

 private:
  struct Range {
    std::size_t end;
    std::vector<NodeId> users;
  };

  void cut(std::size_t offset) {
    auto at = ranges_.lower_bound(offset);
    if (at == ranges_.begin()) return;
    --at;
    if (at->second.end <= offset) return;
    Range upper = at->second;
    at->second.end = offset;
    ranges_.emplace_hint(std::next(at), offset, std::move(upper));
  }

  std::map<std::size_t, Range> ranges_;
};

class EdgeFinder {
 public:
  EdgeFinder(const Graph& graph, const PlanTables& plan)
      : graph_(graph), plan_(plan), writer_(writers(graph, plan.nodes)), ancestors_(plan.nodes), users_(graph.devices.size()) {}

  std::vector<PlanEdge> run() && {
    for (NodeId n = plan_.nodes.begin; n < plan_.nodes.end; ++n) {
      const GraphNode& node = graph_.nodes[n];
      base::checkpoint_now();
      for_each_before(node, writer_, [&](NodeId before) { ancestors_.add(n, before); });
      for (std::size_t i = 0; i < node.inputs.size(); ++i)
        if (const ValueId v = node.inputs[i]; v != kNoValue && writer_[v] != kNobody && !is_ignored(node, i) && has_bytes(v))
          users_[graph_.values[v].device].use(n, location(v).offset, location(v).offset + location(v).extent_bytes);
      std::vector<NodeId> before;
      for (const ValueId v : node.outputs)
        if (v != kNoValue && has_bytes(v)) write(n, node, v, before);
      wait_for(n, std::move(before));
    }
    return std::move(edges_);
  }

 private:
  const ValueLocation& location(ValueId v) const { return plan_.locations[v]; }
  bool has_bytes(ValueId v) const { return location(v).planned() && location(v).extent_bytes != 0; }

  void write(NodeId n, const GraphNode& node, ValueId v, std::vector<NodeId>& before) {
    if (location(v).reuse == Reuse::identity || location(v).reuse == Reuse::view) return;
    Users& users = users_[graph_.values[v].device];
    std::size_t begin = location(v).offset;
    const std::size_t end = begin + location(v).extent_bytes;
    for (const auto& [low, high] : joined_ranges(node, v)) {
      if (begin < low) users.write(n, begin, low, before);
      begin = std::max(begin, high);
    }
    if (begin < end) users.write(n, begin, end, before);
  }

  // The ranges of an output that already hold inputs: the node does not write these bytes.
  std::vector<std::pair<std::size_t, std::size_t>> joined_ranges(const GraphNode& node, ValueId v) const {
    std::vector<std::pair<std::size_t, std::size_t>> ranges;
    if (location(v).reuse != Reuse::joined) return ranges;
    for (const ViewOption& option : node.views) {
      const ValueId input = node.inputs[option.input];
      if (!option.of_input && node.outputs[option.output] == v && location(input).buffer == location(v).buffer &&
          location(input).offset == location(v).offset + option.offset_bytes)
        ranges.emplace_back(location(input).offset, location(input).offset + location(input).extent_bytes);
    }
    std::sort(ranges.begin(), ranges.end());
    return ranges;
  }

  // Latest first: their ancestors need no edge of their own (transitive reduction).
  void wait_for(NodeId n, std::vector<NodeId> before) {
    std::sort(before.begin(), before.end(), std::greater<>());
    for (const NodeId one : before) {
      if (one == n || ancestors_.has(n, one)) continue;
      ancestors_.add(n, one);
      edges_.push_back({one, n});
    }
  }

  const Graph& graph_;
  const PlanTables& plan_;
  std::vector<NodeId> writer_;
  Ancestors ancestors_;
  std::vector<Users> users_;  // of each device
  std::vector<PlanEdge> edges_;
};

}  // namespace

std::vector<PlanEdge> find_edges(const Graph& graph, const PlanTables& plan) { return EdgeFinder(graph, plan).run(); }

}  // namespace berth::internal::plan
