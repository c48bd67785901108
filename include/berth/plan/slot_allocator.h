// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "berth/export.h"
#include "berth/plan/plan.h"

// Slots by hand, for programs that walk through their own graph: a value requests a slot when it is written, and
// releases it when it has been read for the last time. Nothing is allocated; the slots are a plan. The strategies of
// slots of `plan` use this class too. Not synchronized: one owner at a time.
//
//     SlotAllocator slots(16);
//     std::uint32_t a = slots.request({.bytes = 4096});
//     std::uint32_t b = slots.request({.bytes = 1024});
//     slots.release(a);                                   // its value is dead
//     std::uint32_t c = slots.request({.bytes = 8192});   // takes the slot of a, which grows
//     std::vector<PlanSlot> table = slots.laid_out();     // sizes and offsets
namespace berth {

struct SlotRequest {
  std::size_t bytes = 0;
  std::uint32_t device = 0;
  std::size_t alignment = 1;          // a power of two
  std::uint32_t colour = UINT32_MAX;  // among slots that suit, those last used with an equal colour are preferred
};

class BERTH_EXPORT SlotAllocator {
 public:
  // A request takes a free slot of its size up to `match_range` times that: the smallest, and of equals the one
  // released first. Else one of down to its size / match_range: the largest, and of equals the one released last,
  // which grows. Else a new one. With 0 no slot is used twice. `slots` are there from the start, and free. Throws
  // ArgumentError: a range that is not from 0 to 2²⁰, a slot past the address space.
  explicit SlotAllocator(int match_range = 16, std::vector<PlanSlot> slots = {});
  ~SlotAllocator();
  SlotAllocator(SlotAllocator&&) noexcept;
  SlotAllocator& operator=(SlotAllocator&&) noexcept;

  // The index of a slot; kNoSlot for no bytes. O(log slots), without colours. Throws ArgumentError: an alignment that
  // is no power of two, bytes past the address space.
  std::uint32_t request(const SlotRequest& request);

  // Frees a slot. kNoSlot is allowed, and nothing. Throws ArgumentError for one that is not in use.
  void release(std::uint32_t slot);

  // Takes a free slot as it is, with what it holds: its size and its offset stay for ever. Throws ArgumentError for one
  // that is not free.
  void occupy(std::uint32_t slot);

  // All slots, by index; their offsets are not yet those that they will have.
  const std::vector<PlanSlot>& slots() const noexcept;

  // All slots, with offsets: those that were occupied where they were, the others around them, so that the offset of a
  // slot is a multiple of every alignment that was requested there. Throws ArgumentError(size_overflow).
  std::vector<PlanSlot> laid_out() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace berth
