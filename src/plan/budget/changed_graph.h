// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "berth/plan/budget.h"

// Applies budget items to a graph.
namespace berth::internal::plan {

// The position of a node relative to the original graph: node n of that graph at 2n + 1, what was inserted
// before it at 2n.
using Stand = std::uint64_t;

struct ChangedGraph {
  Graph graph;
  std::vector<Stand> stands;  // of each node; ascending
};

// REQUIRES: every item refers to this graph.
ChangedGraph change_graph(const Graph& graph, std::span<const BudgetItem> items, std::string_view move_to);

}  // namespace berth::internal::plan
