// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/plan/plan.h"
#include "plan/lives.h"
#include "plan/pack/packer.h"

// Other topological orders of a graph, which may need less memory than its own.
namespace berth::internal::plan {

struct NodeOrder {
  std::string name;
  std::vector<NodeId> nodes;       // all of the range
  std::size_t estimate_bytes = 0;  // peak in the model
};

// The promising orders, the least estimate first, without the given one. `which` is "best", or the name of one
// rule.
std::vector<NodeOrder> find_orders(const Graph& graph, NodeRange nodes, const std::vector<Life>& lives, bool reuse, std::string_view which,
                                   const Patience& patience);

// The graph with its nodes in another order; values keep their numbers. Nodes outside the range stay where they
// are.
Graph in_order(const Graph& graph, NodeRange nodes, const std::vector<NodeId>& order);

}  // namespace berth::internal::plan
