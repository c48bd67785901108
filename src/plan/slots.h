// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "berth/plan/plan.h"
#include "plan/problem.h"
#include "plan/reuse.h"

// Plans of slots: each buffer gets a storage id, and a slot is reused when its buffer has died. Graph executors
// without offsets into an arena work this way.
namespace berth::internal::plan {

struct SlotsTask {
  const std::vector<PackBuffer>& buffers;
  const std::vector<PlanSlot>& given;         // of an earlier plan; they come first
  const std::vector<std::uint32_t>& colours;  // of each buffer: slots of the same colour are preferred; empty:
                                              // no colours
  int match_range;                            // a slot from size / range to size × range is reused; 0: none
};

struct SlotsPacking {
  std::vector<PlanSlot> slots;      // with offsets, device by device
  std::vector<std::uint32_t> slot;  // of each buffer; kNoSlot when it has no bytes
  std::size_t total_bytes = 0;
};

// REQUIRES: no buffer has a fixed offset; slots cannot have one.
SlotsPacking pack_slots(const SlotsTask& task);

}  // namespace berth::internal::plan
