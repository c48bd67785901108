// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "berth/plan/graph.h"
#include "berth/plan/plan.h"

// The happens-before relation that the graph and the plan's edges imply, for race detection in parallel plans.
namespace berth::internal::plan::verify {

class Order {
 public:
  // REQUIRES: every edge goes from a lower to a higher node of the range.
  Order(const Graph& graph, NodeRange nodes, const std::vector<PlanEdge>& edges);

  // Of each pair of nodes of the range, whether the first ends before the second begins. Exact for any number of
  // nodes: it goes along all edges once for every few hundred nodes that come first in a pair.
  std::vector<bool> implied(const std::vector<PlanEdge>& pairs) const;

 private:
  void judge(const std::vector<PlanEdge>& pairs, const std::vector<std::size_t>& block, std::vector<bool>& answers) const;

  NodeId first_;
  std::vector<std::vector<NodeId>> before_;  // the direct predecessors of each node
};

}  // namespace berth::internal::plan::verify
