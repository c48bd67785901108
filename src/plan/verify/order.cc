// SPDX-License-Identifier: Apache-2.0
#include "plan/verify/order.h"

#include <algorithm>

namespace berth::internal::plan::verify {

Order::Order(const Graph& graph, NodeRange nodes, const std::vector<PlanEdge>& edges)
    : first_(nodes.begin), words_((nodes.end - nodes.begin + 63) / 64), rows_(words_ * (nodes.end - nodes.begin)) {
  std::vector<NodeId> writer(graph.values.size(), UINT32_MAX);
  for (NodeId n = nodes.begin; n < nodes.end; ++n)
    for (const ValueId v : graph.nodes[n].outputs)
      if (v != kNoValue) writer[v] = n;
  std::vector<PlanEdge> sorted = edges;
  std::sort(sorted.begin(), sorted.end(), [](const PlanEdge& a, const PlanEdge& b) { return a.after < b.after; });
  auto edge = sorted.begin();
  for (NodeId n = nodes.begin; n < nodes.end; ++n) {
    const GraphNode& node = graph.nodes[n];
    for (std::uint32_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId v = node.inputs[i];
      // An ignored input is no dependency.
      if (v != kNoValue && writer[v] < n && std::count(node.ignored_inputs.begin(), node.ignored_inputs.end(), i) == 0)
        follow(writer[v], n);
    }
    for (; edge != sorted.end() && edge->after == n; ++edge) follow(edge->before, n);
  }
}

void Order::follow(NodeId before, NodeId after) {
  const std::size_t from = (before - first_) * words_;
  const std::size_t to = (after - first_) * words_;
  const std::size_t bit = before - first_;
  for (std::size_t word = 0; word <= bit / 64; ++word) rows_[to + word] |= rows_[from + word];
  rows_[to + bit / 64] |= std::uint64_t{1} << (bit % 64);
}

}  // namespace berth::internal::plan::verify
