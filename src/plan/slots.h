// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "berth/plan/plan.h"
#include "berth/plan/slot_allocator.h"
#include "plan/kept.h"
#include "plan/problem.h"
#include "plan/reuse.h"

// Plans of slots: each buffer gets a storage id, and a slot is reused when its buffer has died. Graph executors
// without offsets into an arena work this way.
namespace berth::internal::plan {

// A buffer that is kept, in the slot in which it lies.
struct KeptSlot {
  std::uint32_t buffer;
  std::uint32_t slot;
};

// The slots that a plan starts with.
struct GivenSlots {
  std::vector<PlanSlot> slots = {};  // of an earlier plan; they come first
  std::vector<KeptSlot> kept = {};   // these slots keep their size and their offset
};

struct SlotsTask {
  const std::vector<PackBuffer>& buffers;
  const GivenSlots& given;
  const std::vector<std::uint32_t>& colours;  // of each buffer: slots of the same colour are preferred; empty:
                                              // no colours
  int match_range;                            // a slot from size / range to size × range is reused; 0: none
};

struct SlotsPacking {
  std::vector<PlanSlot> slots;      // with offsets, device by device
  std::vector<std::uint32_t> slot;  // of each buffer; kNoSlot when it has no bytes
  std::size_t total_bytes = 0;
};

// The slots of buffers, over a slot allocator: kept buffers have theirs from the start, and a slot is free when the last
// of its buffers has died.
class BufferSlots {
 public:
  explicit BufferSlots(const SlotsTask& task);
  void request(std::uint32_t buffer);
  void release(std::uint32_t buffer);
  bool is_kept(std::uint32_t buffer) const { return kept_[buffer]; }
  SlotsPacking result() &&;

 private:
  const SlotsTask& task_;
  SlotAllocator allocator_;
  std::vector<std::uint32_t> slot_of_;
  std::vector<std::uint32_t> live_;  // buffers in each slot that was given
  std::vector<bool> kept_;           // of each buffer
};

// The slots of the plan that the options continue, or those that they give. Kept buffers that lie in no slot, since
// that is a plan of offsets, get one of their own where they lie.
GivenSlots find_given_slots(const PlanOptions& options, const std::vector<KeptRange>& kept, const ReuseResult& reuse);

// Whether a buffer has a fixed offset and is none of those that are kept: then there are no slots for it.
bool has_fixed(const std::vector<PackBuffer>& buffers, const std::vector<KeptRange>& kept);

// REQUIRES: no buffer has a fixed offset but those that are kept.
SlotsPacking pack_slots(const SlotsTask& task);

// The offset of each buffer.
std::vector<std::size_t> offsets_in_slots(const SlotsPacking& packing, const std::vector<PackBuffer>& buffers);

}  // namespace berth::internal::plan
