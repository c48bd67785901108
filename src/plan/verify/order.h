// SPDX-License-Identifier: Apache-2.0
#pragma once

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
