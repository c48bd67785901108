// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "plan/lives.h"
#include "plan/reuse.h"
#include "plan/slots.h"

// The plain rule of older planners of slots: one pass over the nodes. A node first takes inputs in place, where the
// output is as large; then its other outputs request slots, the largest first; then it releases the inputs that are read
// for the last time, in the order of its list, and outputs that nobody reads.
namespace berth::internal::plan {

// Reuse by options as the plain rule knows it. Any smaller or partial reuse is not for it.
ReuseResult find_plain_reuse(const Graph& graph, NodeRange nodes, const std::vector<Life>& lives, bool inplace,
                             std::span<const NodeId> order, std::span<const KeptRange> kept);

struct PlainTask {
  const Graph& graph;
  NodeRange nodes;
  std::span<const NodeId> order;
  const std::vector<Life>& lives;
  const ReuseResult& reuse;  // the plain one
  const GivenSlots& given;
  int match_range;
};

SlotsPacking pack_plain_slots(const PlainTask& task);

}  // namespace berth::internal::plan
