// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "berth/plan/graph.h"
#include "berth/plan/plan.h"

// Plans for nodes that may run at once: colours, which keep branches apart where that costs nothing, and the edges that make a plan safe.
namespace berth::internal::plan {

inline constexpr NodeId kMostParallelNodes = 1 << 16;  // their order takes a bit for each pair

// A colour for each node of the range: the path with the most nodes that have none gets the first, and so on; with `most` colours, the nodes
// that are left share the last.
std::vector<std::uint32_t> colour_nodes(const Graph& graph, NodeRange nodes, std::uint32_t most);

// The nodes that must wait for others beside what the graph says, so that nobody writes over bytes that another may still use. Each goes
// from a lower to a higher node; none follows from the graph and the others. REQUIRES: at most kMostParallelNodes nodes.
std::vector<PlanEdge> find_edges(const Graph& graph, const PlanTables& plan);

}  // namespace berth::internal::plan
