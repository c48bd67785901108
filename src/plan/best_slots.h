// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
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

// Tries the given match range alone, or those from 1 on; no more when patience ends, but at least one.
BestSlots pack_best_slots(SlotsTask task, std::optional<int> match_range, std::size_t capacity, std::size_t devices,
                          const Patience& patience);

}  // namespace berth::internal::plan
