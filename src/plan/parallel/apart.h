// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plan/parallel/conflicts.h"

// What there is to pack when nodes run at once, and which edges would leave less of it.
namespace berth::internal::plan::parallel {

// Reuse by options, the buffers that follow from it, and what of them conflicts, under one happens-before relation.
struct Apart {
  ReuseResult reuse;
  std::vector<BufferUses> uses;       // of each buffer
  std::vector<Conflicts> conflicts;   // of each device
  std::vector<Antichain> antichains;  // of each device

  // No packing is smaller, on all devices together.
  std::size_t bound_bytes() const;
};

Apart find_apart(const Graph& graph, NodeRange nodes, const std::vector<Life>& lives, bool inplace, const HappensBefore& reach);

struct EdgeMarket {
  const Graph& graph;
  NodeRange nodes;
  const Apart& apart;
  const HappensBefore& reach;
  const PathLengths& paths;
  const std::vector<std::uint32_t>& colours;  // of each node of the range
};

// Edges that end one buffer of a heaviest antichain before another begins, so that the two may share bytes; about
// `most` of them, at least those of one pair, none when no edges can do it. Pairs come by what they could save for
// each edge; of those that save at least half as much as the best, the one whose edges make the longest path least
// longer, and then one whose nodes have the same colour.
std::vector<PlanEdge> choose_edges(const EdgeMarket& market, std::size_t most);

}  // namespace berth::internal::plan::parallel
