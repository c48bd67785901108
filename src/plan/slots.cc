// SPDX-License-Identifier: Apache-2.0
#include "plan/slots.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "berth/base/checked.h"
#include "berth/plan/slot_allocator.h"

namespace berth::internal::plan {

namespace {

SlotsPacking laid_out(const SlotAllocator& allocator, std::vector<std::uint32_t> slot_of) {
  SlotsPacking out{allocator.laid_out(), std::move(slot_of)};
  std::vector<std::size_t> tops;
  for (const PlanSlot& slot : out.slots) {
    if (tops.size() <= slot.device) tops.resize(slot.device + std::size_t{1});
    tops[slot.device] = std::max(tops[slot.device], slot.offset + slot.bytes);
  }
  for (const std::size_t top : tops) out.total_bytes = checked_add(out.total_bytes, top, "the bytes of all slots");
  return out;
}

}  // namespace

SlotsPacking pack_slots(const SlotsTask& task) {
  SlotAllocator slots(task.match_range, task.given);
  std::vector<std::uint32_t> slot_of(task.buffers.size(), kNoSlot);
  std::vector<std::uint32_t> births(task.buffers.size());
  std::iota(births.begin(), births.end(), 0U);
  std::vector<std::uint32_t> deaths = births;
  const auto pack = [&](std::uint32_t i) -> const PackBuffer& { return task.buffers[i]; };
  // The largest output of a node first: it has the fewest candidates.
  std::sort(births.begin(), births.end(), [&](std::uint32_t a, std::uint32_t b) {
    if (pack(a).begin != pack(b).begin) return pack(a).begin < pack(b).begin;
    return pack(a).bytes != pack(b).bytes ? pack(a).bytes > pack(b).bytes : a < b;
  });
  std::sort(deaths.begin(), deaths.end(),
            [&](std::uint32_t a, std::uint32_t b) { return pack(a).end != pack(b).end ? pack(a).end < pack(b).end : a < b; });
  auto dead = deaths.begin();
  for (const std::uint32_t index : births) {
    for (; dead != deaths.end() && pack(*dead).end <= pack(index).begin; ++dead) slots.release(slot_of[*dead]);
    const std::uint32_t colour = task.colours.empty() ? UINT32_MAX : task.colours[index];
    slot_of[index] = slots.request({pack(index).bytes, pack(index).device, pack(index).alignment, colour});
  }
  return laid_out(slots, std::move(slot_of));
}

}  // namespace berth::internal::plan
