// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "berth/plan/budget.h"

// A graph with items of a budget carried out.
namespace berth::internal::plan {

// Where a node stands among those of the graph before: node n of that graph at 2n + 1, what was put before it at 2n.
using Stand = std::uint64_t;

struct ChangedGraph {
  Graph graph;
  std::vector<Stand> stands;  // of each node; rising
};

// REQUIRES: every item is of this graph.
ChangedGraph change_graph(const Graph& graph, std::span<const BudgetItem> items, std::string_view move_to);

}  // namespace berth::internal::plan
