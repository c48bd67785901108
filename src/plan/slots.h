// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "berth/plan/plan.h"
#include "plan/problem.h"
#include "plan/reuse.h"

// Plans of slots: each buffer gets a storage id, and a slot is handed on when its buffer has died. What graph executors of an older school
// do, and what those need that cannot address into an arena.
namespace berth::internal::plan {

struct SlotsTask {
  const std::vector<PackBuffer>& buffers;
  const std::vector<PlanSlot>& given;         // of an earlier plan; they come first
  const std::vector<std::uint32_t>& colours;  // of each buffer: slots of its own are preferred; empty: none
  int match_range;                            // a slot from size / range to size × range is reused; 0: none
};

struct SlotsPacking {
  std::vector<PlanSlot> slots;      // with offsets, device by device
  std::vector<std::uint32_t> slot;  // of each buffer; kNoSlot when it has no bytes
  std::size_t total_bytes = 0;
};

// Slots have no fixed offsets: REQUIRES that no buffer has one.
SlotsPacking pack_slots(const SlotsTask& task);

}  // namespace berth::internal::plan
