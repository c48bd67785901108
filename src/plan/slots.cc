// SPDX-License-Identifier: Apache-2.0
#include "plan/slots.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "berth/base/checked.h"
#include "plan/pack/packer.h"

namespace berth::internal::plan {

namespace {

class Slots {
 public:
  explicit Slots(const SlotsTask& task) : task_(task), slot_of_(task.buffers.size(), kNoSlot) {
    std::uint32_t devices = 0;
    for (const PackBuffer& buffer : task.buffers) devices = std::max(devices, buffer.device + 1U);
    for (const PlanSlot& slot : task.given) devices = std::max(devices, slot.device + 1);
    free_.resize(devices);
    for (const PlanSlot& slot : task.given) release(add({slot.device, slot.bytes, 0}));
  }

  SlotsPacking run() && {
    std::vector<std::uint32_t> births(task_.buffers.size());
    std::iota(births.begin(), births.end(), 0U);
    std::vector<std::uint32_t> deaths = births;
    const auto pack = [&](std::uint32_t i) -> const PackBuffer& { return task_.buffers[i]; };
    // The largest output of a node first: it has the fewest candidates.
    std::sort(births.begin(), births.end(), [&](std::uint32_t a, std::uint32_t b) {
      if (pack(a).begin != pack(b).begin) return pack(a).begin < pack(b).begin;
      return pack(a).bytes != pack(b).bytes ? pack(a).bytes > pack(b).bytes : a < b;
    });
    std::sort(deaths.begin(), deaths.end(),
              [&](std::uint32_t a, std::uint32_t b) { return pack(a).end != pack(b).end ? pack(a).end < pack(b).end : a < b; });
    auto dead = deaths.begin();
    for (const std::uint32_t index : births) {
      for (; dead != deaths.end() && pack(*dead).end <= pack(index).begin; ++dead)
        if (slot_of_[*dead] != kNoSlot) release(slot_of_[*dead]);
      if (pack(index).bytes != 0) give(index);
    }
    return lay_out();
  }

 private:
  struct Free {
    std::size_t bytes;
    std::uint32_t slot;
    friend bool operator<(const Free& a, const Free& b) { return a.bytes != b.bytes ? a.bytes < b.bytes : a.slot < b.slot; }
  };
  using FreeSet = std::set<Free>;

  std::uint32_t add(PlanSlot slot) {
    slots_.push_back(slot);
    colour_.push_back(UINT32_MAX);
    alignment_.push_back(1);
    return static_cast<std::uint32_t>(slots_.size() - 1);
  }

  void release(std::uint32_t slot) { free_[slots_[slot].device].insert({slots_[slot].bytes, slot}); }

  void give(std::uint32_t index) {
    const PackBuffer& buffer = task_.buffers[index];
    const std::uint32_t colour = task_.colours.empty() ? UINT32_MAX : task_.colours[index];
    std::uint32_t slot = find(free_[buffer.device], buffer.bytes, colour);
    if (slot == kNoSlot) slot = add({buffer.device, buffer.bytes, 0});
    slots_[slot].bytes = std::max(slots_[slot].bytes, buffer.bytes);
    alignment_[slot] = std::max<std::size_t>(alignment_[slot], buffer.alignment);
    colour_[slot] = colour;
    slot_of_[index] = slot;
  }

  // Best fit: the smallest slot that is large enough; else the largest that is too small, which grows. Among
  // the slots within the range, one of the same colour is preferred.
  std::uint32_t find(FreeSet& free, std::size_t bytes, std::uint32_t colour) {
    if (task_.match_range == 0) return kNoSlot;
    const auto range = static_cast<std::size_t>(task_.match_range);
    const std::size_t most = try_multiply(bytes, range).value_or(SIZE_MAX);
    const std::size_t least = bytes / range;
    const auto middle = free.lower_bound({bytes, 0});
    const auto top = free.upper_bound({most, UINT32_MAX});
    const auto bottom = free.lower_bound({least, 0});
    const auto same = [&](const Free& one) { return colour_[one.slot] == colour; };
    auto found = std::find_if(middle, top, same);
    if (found == top) found = middle;
    if (found != top) return take(free, found);
    if (bottom == middle) return kNoSlot;
    const auto below = std::find_if(std::make_reverse_iterator(middle), std::make_reverse_iterator(bottom), same);
    return take(free, below == std::make_reverse_iterator(bottom) ? std::prev(middle) : std::prev(below.base()));
  }

  static std::uint32_t take(FreeSet& free, FreeSet::iterator at) {
    const std::uint32_t slot = at->slot;
    free.erase(at);
    return slot;
  }

  SlotsPacking lay_out() {
    SlotsPacking out{std::move(slots_), std::move(slot_of_), 0};
    // Slots of an earlier plan first, in their order; the others by falling alignment, which leaves the fewest
    // gaps.
    std::vector<std::size_t> order(out.slots.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin() + static_cast<std::ptrdiff_t>(task_.given.size()), order.end(),
                     [&](std::size_t a, std::size_t b) { return alignment_[a] > alignment_[b]; });
    std::vector<std::size_t> tops(free_.size(), 0);
    for (const std::size_t i : order) {
      PlanSlot& slot = out.slots[i];
      slot.offset = checked_align_up(tops[slot.device], alignment_[i], "the bytes of all slots");
      tops[slot.device] = checked_add(slot.offset, slot.bytes, "the bytes of all slots");
    }
    for (const std::size_t top : tops) out.total_bytes = checked_add(out.total_bytes, top, "the bytes of all slots");
    return out;
  }

  const SlotsTask& task_;
  std::vector<PlanSlot> slots_;
  std::vector<std::uint32_t> colour_;   // of the last buffer of each slot
  std::vector<std::size_t> alignment_;  // the greatest of its buffers
  std::vector<FreeSet> free_;           // by device
  std::vector<std::uint32_t> slot_of_;
};

}  // namespace

SlotsPacking pack_slots(const SlotsTask& task) { return Slots(task).run(); }

}  // namespace berth::internal::plan
