// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "berth/plan/graph.h"
#include "berth/plan/plan.h"
#include "plan/problem.h"

// The first step of planning: the lifetime of each value, and whether it gets a location at all.
namespace berth::internal::plan {

struct Life {
  UnplannedReason reason = UnplannedReason::never_written;  // `placed`: it gets a location
  bool survives = false;                                    // is needed after the last node of the range
  Alignment alignment = {};
  std::uint32_t reads = 0;  // by nodes of the range, without ignored inputs
  NodeId begin = 0;         // the step that writes it
  NodeId end = 0;           // one past the last that reads it (at least begin + 1); the end of the range if it
                            // survives
  std::size_t bytes = 0;

  std::size_t extent_bytes() const noexcept {
    return (bytes + alignment - 1) & ~(std::size_t{alignment} - 1);
  }  // rounded up to the alignment
  bool placed() const noexcept { return reason == UnplannedReason::placed; }
  bool used() const noexcept { return reads != 0 || survives; }
};
static_assert(sizeof(Life) == 24);

// The lifetime of each value. `order` is the execution order of the range, as in PlanTables. REQUIRES: the
// graph is valid, the range inside it, the order topological. Throws ArgumentError(size_overflow) when a size
// cannot be rounded up.
std::vector<Life> find_lives(const Graph& graph, NodeRange nodes, std::size_t least_alignment, std::span<const NodeId> order = {});

// The node that runs at a step.
inline NodeId node_at(NodeRange nodes, std::span<const NodeId> order, NodeId step) {
  return order.empty() || step < nodes.begin || step >= nodes.end ? step : order[step - nodes.begin];
}

// Whether the node names the input at a position without reading it.
bool is_ignored(const GraphNode& node, std::size_t position) noexcept;

}  // namespace berth::internal::plan
