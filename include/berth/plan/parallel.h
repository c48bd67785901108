// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "berth/export.h"
#include "berth/plan/graph.h"
#include "berth/plan/plan.h"

// What a parallel plan is judged by: the groups of nodes that form its branches, and how long the graph takes at
// least. Stateless: safe to call from any thread.
//
//     Plan p = plan(graph, {.parallel = 4, .most_edges = 10});
//     p.tables().colours;                                                  // as colour_nodes(graph, {}, 4)
//     longest_path(graph, p.tables().nodes, p.tables().edges);             // with the edges that the plan adds
namespace berth {

// A colour below `most` for each node of the range (empty: of the graph): repeatedly, the path with the most nodes
// that have none gets the next colour; the nodes that remain get the last. Throws ArgumentError for no colours, or
// nodes that are not in the graph. REQUIRES: graph.validate() has passed.
BERTH_EXPORT std::vector<std::uint32_t> colour_nodes(const Graph& graph, NodeRange nodes, std::uint32_t most);

// The path through a range of nodes (empty: all) with the greatest sum of GraphNode::cost, along the values that they
// read and the edges that a plan adds: what the nodes take, however many run at once. Stays at UINT64_MAX when it
// would be more. Throws ArgumentError for nodes that are not in the graph. REQUIRES: graph.validate() has passed.
BERTH_EXPORT std::uint64_t longest_path(const Graph& graph, NodeRange nodes = {}, std::span<const PlanEdge> edges = {});

}  // namespace berth
