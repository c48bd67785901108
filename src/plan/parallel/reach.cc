// SPDX-License-Identifier: Apache-2.0
#include "plan/parallel/reach.h"

#include <algorithm>

#include "base/allowance.h"
#include "berth/base/checked.h"
#include "plan/lives.h"

namespace berth::internal::plan::parallel {

namespace {

constexpr NodeId kNowhere = UINT32_MAX;

std::uint64_t add_lengths(std::uint64_t a, std::uint64_t b) { return try_add(a, b).value_or(UINT64_MAX); }

}  // namespace

std::vector<std::vector<NodeId>> predecessors(const Graph& graph, NodeRange nodes) {
  std::vector<NodeId> writer(graph.values.size(), kNowhere);
  std::vector<std::vector<NodeId>> before(nodes.end - nodes.begin);
  for (NodeId n = nodes.begin; n < nodes.end; ++n) {
    const GraphNode& node = graph.nodes[n];
    base::checkpoint();
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (const ValueId v = node.inputs[i]; v != kNoValue && writer[v] != kNowhere && !is_ignored(node, i))
        before[n - nodes.begin].push_back(writer[v]);
    for (const ValueId v : node.outputs)
      if (v != kNoValue) writer[v] = n;
  }
  return before;
}

HappensBefore::HappensBefore(NodeRange nodes, const std::vector<std::vector<NodeId>>& before) : first_(nodes.begin), rows_(before.size()) {
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    base::checkpoint_now();
    rows_[row].resize(row / 64 + 1);
    for (const NodeId one : before[row]) follow(row, one);
  }
}

void HappensBefore::follow(std::size_t row, NodeId before) {
  const NodeId bit = before - first_;
  const std::vector<std::uint64_t>& other = rows_[bit];
  for (std::size_t word = 0; word < other.size(); ++word) rows_[row][word] |= other[word];
  rows_[row][bit / 64] |= std::uint64_t{1} << (bit % 64);
}

std::vector<std::uint64_t> HappensBefore::before_all(const std::vector<NodeId>& nodes) const {
  std::vector<std::uint64_t> out = rows_[nodes.front() - first_];
  for (const NodeId n : nodes) {
    const std::vector<std::uint64_t>& row = rows_[n - first_];
    for (std::size_t word = 0; word < out.size(); ++word) out[word] &= word < row.size() ? row[word] : 0;
  }
  out.resize(rows_.size() / 64 + 1);
  return out;
}

void HappensBefore::add(PlanEdge edge) {
  if (precedes(edge.before, edge.after)) return;
  const NodeId end = first_ + static_cast<NodeId>(rows_.size());
  for (NodeId n = edge.after; n < end; ++n)
    if (n == edge.after || precedes(edge.after, n)) follow(n - first_, edge.before);
}

Stages::Stages(NodeRange nodes, const std::vector<std::vector<NodeId>>& before) : first_(nodes.begin), stage_(before.size()) {
  const std::size_t count = before.size();
  std::vector<std::size_t> next(count, count);       // the first successor of each node
  std::vector<std::size_t> least(count + 1, count);  // of this node and all later ones: one past the last predecessor; 0 for none
  for (std::size_t i = count; i-- > 0;) {
    std::size_t last = 0;
    for (const NodeId one : before[i]) {
      next[one - first_] = i;
      last = std::max<std::size_t>(last, one - first_ + std::size_t{1});
    }
    least[i] = std::min(least[i + 1], last);
  }
  // Where every earlier node has a successor up to here, and every later one a predecessor from here on, paths lead
  // from all of the former to this node, and from it to all of the latter.
  std::size_t reached = 0;
  std::uint32_t stage = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const bool is_alone = reached <= i && (i + 1 == count || least[i + 1] > i);
    stage_[i] = is_alone ? ++stage : stage;
    if (is_alone) ++stage;
    reached = std::max(reached, next[i]);
  }
}

NodeRange Stages::around(NodeRange steps) const {
  const auto begin = std::lower_bound(stage_.begin(), stage_.end(), stage_[steps.begin - first_]);
  const auto end = std::upper_bound(stage_.begin(), stage_.end(), stage_[steps.end - 1 - first_]);
  return {first_ + static_cast<NodeId>(begin - stage_.begin()), first_ + static_cast<NodeId>(end - stage_.begin())};
}

PathLengths path_lengths(const Graph& graph, NodeRange nodes, const std::vector<std::vector<NodeId>>& before,
                         std::span<const PlanEdge> edges) {
  std::vector<PlanEdge> sorted(edges.begin(), edges.end());
  std::ranges::sort(sorted, {}, &PlanEdge::after);
  PathLengths paths{std::vector<std::uint64_t>(before.size(), 0), std::vector<std::uint64_t>(before.size(), 0)};
  auto edge = sorted.begin();
  for (std::size_t i = 0; i < before.size(); ++i) {
    std::uint64_t& here = paths.until[i];
    for (const NodeId one : before[i]) here = std::max(here, paths.until[one - nodes.begin]);
    for (; edge != sorted.end() && edge->after - nodes.begin == i; ++edge) here = std::max(here, paths.until[edge->before - nodes.begin]);
    here = add_lengths(here, graph.nodes[nodes.begin + i].cost);
    paths.longest = std::max(paths.longest, here);
  }
  for (std::size_t i = before.size(); i-- > 0;) {
    paths.from[i] = add_lengths(paths.from[i], graph.nodes[nodes.begin + i].cost);
    for (const NodeId one : before[i]) paths.from[one - nodes.begin] = std::max(paths.from[one - nodes.begin], paths.from[i]);
    for (; edge != sorted.begin() && std::prev(edge)->after - nodes.begin == i; --edge) {
      std::uint64_t& there = paths.from[std::prev(edge)->before - nodes.begin];
      there = std::max(there, paths.from[i]);
    }
  }
  return paths;
}

}  // namespace berth::internal::plan::parallel
