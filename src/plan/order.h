// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "berth/plan/graph.h"
#include "berth/plan/plan.h"

// Plans for nodes that may run concurrently: colours, which keep branches apart where that costs nothing, and
// the edges that make a plan race-free.
namespace berth::internal::plan {

inline constexpr NodeId kMostParallelNodes = 1 << 16;  // reachability takes a bit for each pair

// A colour for each node of the range: repeatedly, the path with the most uncoloured nodes gets the next
// colour; with `most` colours, the nodes that remain get the last.
std::vector<std::uint32_t> colour_nodes(const Graph& graph, NodeRange nodes, std::uint32_t most);

// The happens-before edges, beside those of the graph, that keep a node from overwriting bytes which another
// may still use. Each goes from a lower to a higher node; the set has no redundant edge. REQUIRES: at most
// kMostParallelNodes nodes.
std::vector<PlanEdge> find_edges(const Graph& graph, const PlanTables& plan);

}  // namespace berth::internal::plan
