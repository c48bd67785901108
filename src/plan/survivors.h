// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "berth/plan/graph.h"
#include "plan/lives.h"
#include "plan/pack/packer.h"
#include "plan/pack/strategies.h"
#include "plan/reuse.h"

// Packs a range that others follow. What survives it is an obstacle to them, and leaves them the largest contiguous
// rest if it lies at the bottom of the arena, what is needed longest lowest.
namespace berth::internal::plan {

struct SurvivorsTask {
  const Graph& graph;
  NodeRange nodes;
  const std::vector<Life>& lives;
  const ReuseResult& reuse;
  const std::vector<const OffsetStrategy*>& strategies;
  std::vector<std::size_t> peaks;  // of each device, which it may not exceed
  const Patience& patience;
};

struct SurvivorsPacking {
  std::vector<std::size_t> offsets;  // of each buffer
  std::vector<std::size_t> peaks;    // of each device
};

// Nothing when no strategy finds such a packing.
std::optional<SurvivorsPacking> pack_survivors_low(const SurvivorsTask& task);

}  // namespace berth::internal::plan
