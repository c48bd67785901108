// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "plan/pack/packer.h"
#include "plan/slots.h"

// Plans of slots by several match ranges, of which the best is kept.
namespace berth::internal::plan {

struct BestSlots {
  SlotsPacking packing;
  int match_range;
  bool holds;  // every device's slots are within the capacity
};

// The end of the last slot on each device.
std::vector<std::size_t> peaks_of(const SlotsPacking& packing, std::size_t devices);

// How many match ranges are tried: 16, and fewer of very many buffers, so that the work is bounded. At least one.
int ranges_for(std::size_t buffers) noexcept;

struct SlotsSweep {
  const Graph& graph;
  NodeRange nodes;
  std::span<const NodeId> order;
  const PlanOptions& options;
  const std::vector<KeptRange>& kept;
  const ReuseResult& reuse;
  const Patience& patience;
  bool plainly;  // by the plain rule
};

// Tries the match range of the options alone, or those from 1 on; no more when patience ends, but at least one.
BestSlots sweep_slots(const SlotsSweep& sweep);

}  // namespace berth::internal::plan
