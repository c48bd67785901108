// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "berth/plan/graph.h"
#include "berth/plan/plan.h"

// Which nodes are done before which begin, whatever order they run in: what the graph and the plan's edges force.
namespace berth::internal::plan::verify {

class Order {
 public:
  // REQUIRES: every edge goes from a lower to a higher node of the range.
  Order(const Graph& graph, NodeRange nodes, const std::vector<PlanEdge>& edges);

  bool precedes(NodeId before, NodeId after) const noexcept {
    if (before < first_ || after < first_) return before < after;
    const std::size_t bit = before - first_;
    return before < after && (rows_[(after - first_) * words_ + bit / 64] >> (bit % 64) & 1) != 0;
  }

 private:
  void follow(NodeId before, NodeId after);

  NodeId first_;
  std::size_t words_;
  std::vector<std::uint64_t> rows_;  // row `after`, bit `before`
};

}  // namespace berth::internal::plan::verify
