// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/plan/plan.h"
#include "plan/lives.h"
#include "plan/pack/packer.h"

// Other orders in which the nodes of a graph can run, that may need less memory than the one it has.
namespace berth::internal::plan {

struct NodeOrder {
  std::string name;
  std::vector<NodeId> nodes;       // all of the range
  std::size_t estimate_bytes = 0;  // what it needs, as the model counts
};

// The promising ones, the least estimate first; none that is the order given. `which` is "best", or the name of one rule.
std::vector<NodeOrder> find_orders(const Graph& graph, NodeRange nodes, const std::vector<Life>& lives, bool share, std::string_view which,
                                   const Patience& patience);

// The graph with its nodes in another order; values keep their numbers. Nodes outside the range stay where they are.
Graph in_order(const Graph& graph, NodeRange nodes, const std::vector<NodeId>& order);

}  // namespace berth::internal::plan
