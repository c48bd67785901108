// SPDX-License-Identifier: Apache-2.0
#include "plan/slots.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "berth/base/checked.h"

namespace berth::internal::plan {

BufferSlots::BufferSlots(const SlotsTask& task)
    : task_(task),
      allocator_(task.match_range, task.given.slots),
      slot_of_(task.buffers.size(), kNoSlot),
      live_(task.given.slots.size(), 0),
      kept_(task.buffers.size(), false) {
  for (const auto& [buffer, slot] : task.given.kept) {
    slot_of_[buffer] = slot;
    kept_[buffer] = true;
    if (live_[slot]++ == 0) allocator_.occupy(slot);
  }
}

void BufferSlots::request(std::uint32_t buffer) {
  const PackBuffer& one = task_.buffers[buffer];
  const std::uint32_t colour = task_.colours.empty() ? UINT32_MAX : task_.colours[buffer];
  const std::uint32_t slot = allocator_.request({one.bytes, one.device, one.alignment, colour});
  slot_of_[buffer] = slot;
  if (slot < live_.size()) live_[slot] = 1;
}

void BufferSlots::release(std::uint32_t buffer) {
  const std::uint32_t slot = slot_of_[buffer];
  if (slot >= live_.size() || --live_[slot] == 0) allocator_.release(slot);
}

SlotsPacking BufferSlots::result() && {
  SlotsPacking out{allocator_.laid_out(), std::move(slot_of_)};
  std::vector<std::size_t> tops;
  for (const PlanSlot& slot : out.slots) {
    if (tops.size() <= slot.device) tops.resize(slot.device + std::size_t{1});
    tops[slot.device] = std::max(tops[slot.device], slot.offset + slot.bytes);
  }
  for (const std::size_t top : tops) out.total_bytes = checked_add(out.total_bytes, top, "the bytes of all slots");
  return out;
}

GivenSlots find_given_slots(const PlanOptions& options, const std::vector<KeptRange>& kept, const ReuseResult& reuse) {
  GivenSlots given{options.slots};
  if (options.after == nullptr) return given;
  given.slots = options.after->tables().slots;
  const bool have_slots = !given.slots.empty();
  for (const KeptRange& range : kept) {
    if (range.begin == range.end) continue;
    auto slot = static_cast<std::uint32_t>(given.slots.size());
    if (have_slots)
      slot = range.slot;
    else
      given.slots.push_back({range.device, range.end - range.begin, range.begin});
    given.kept.push_back({reuse.values[range.values.front()].buffer, slot});
  }
  return given;
}

bool has_fixed(const std::vector<PackBuffer>& buffers, const std::vector<KeptRange>& kept) {
  const auto fixed = std::count_if(buffers.begin(), buffers.end(), [](const PackBuffer& one) { return one.fixed && one.bytes != 0; });
  return fixed > std::count_if(kept.begin(), kept.end(), [](const KeptRange& range) { return range.begin != range.end; });
}

std::vector<std::size_t> offsets_in_slots(const SlotsPacking& packing, const std::vector<PackBuffer>& buffers) {
  std::vector<std::size_t> offsets;
  offsets.reserve(buffers.size());
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const std::uint32_t slot = packing.slot[i];
    offsets.push_back(slot == kNoSlot ? 0 : buffers[i].fixed.value_or(packing.slots[slot].offset));
  }
  return offsets;
}

SlotsPacking pack_slots(const SlotsTask& task) {
  BufferSlots slots(task);
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
    for (; dead != deaths.end() && pack(*dead).end <= pack(index).begin; ++dead) slots.release(*dead);
    if (!slots.is_kept(index)) slots.request(index);
  }
  return std::move(slots).result();
}

}  // namespace berth::internal::plan
