// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "berth/plan/graph.h"
#include "berth/plan/plan.h"

// The edges that make a plan for nodes in order safe for nodes that run concurrently.
namespace berth::internal::plan {

inline constexpr NodeId kMostParallelNodes = 1 << 16;  // reachability takes a bit for each pair

// The happens-before edges, beside those of the graph, that keep a node from overwriting bytes which another
// may still use. Each goes from a lower to a higher node; the set has no redundant edge. REQUIRES: at most
// kMostParallelNodes nodes.
std::vector<PlanEdge> find_edges(const Graph& graph, const PlanTables& plan);

}  // namespace berth::internal::plan
