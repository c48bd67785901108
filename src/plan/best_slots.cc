// SPDX-License-Identifier: Apache-2.0
#include "plan/best_slots.h"

#include <algorithm>
#include <utility>

namespace berth::internal::plan {

namespace {

constexpr int kMostRanges = 16;
constexpr std::size_t kMostPlaced = 8 * kVeryMany;  // buffers in total, where there are very many: a few seconds

}  // namespace

int ranges_for(std::size_t buffers) noexcept {
  if (buffers <= kVeryMany) return kMostRanges;
  return static_cast<int>(std::clamp<std::size_t>(kMostPlaced / buffers, 1, kMostRanges));
}

std::vector<std::size_t> peaks_of(const SlotsPacking& packing, std::size_t devices) {
  std::vector<std::size_t> peaks(devices, 0);
  for (const PlanSlot& slot : packing.slots) peaks[slot.device] = std::max(peaks[slot.device], slot.offset + slot.bytes);
  return peaks;
}

BestSlots pack_best_slots(SlotsTask task, std::optional<int> match_range, std::size_t capacity, std::size_t devices,
                          const Patience& patience) {
  const int first = match_range.value_or(1);
  const int last = match_range.value_or(ranges_for(task.buffers.size()));
  std::optional<BestSlots> best;
  for (int range = first; range <= last; ++range) {
    if (best && patience.over()) break;
    task.match_range = range;
    SlotsPacking packing = pack_slots(task);
    const std::vector<std::size_t> peaks = peaks_of(packing, devices);
    const bool holds = std::all_of(peaks.begin(), peaks.end(), [&](std::size_t peak) { return peak <= capacity; });
    // What fits the capacity comes before what does not, then what is smaller.
    if (best && std::pair(!holds, packing.total_bytes) >= std::pair(!best->holds, best->packing.total_bytes)) continue;
    best = BestSlots{std::move(packing), range, holds};
  }
  return std::move(*best);
}

}  // namespace berth::internal::plan
