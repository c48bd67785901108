// SPDX-License-Identifier: Apache-2.0
#include "plan/best_slots.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "plan/plain_slots.h"

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

BestSlots sweep_slots(const SlotsSweep& sweep) {
  const PlanOptions& options = sweep.options;
  const GivenSlots given = find_given_slots(options, sweep.kept, sweep.reuse);
  const std::vector<Life> lives = sweep.plainly ? find_lives(sweep.graph, sweep.nodes, options, sweep.order) : std::vector<Life>();
  const int first = options.match_range.value_or(1);
  const int last = options.match_range.value_or(ranges_for(sweep.reuse.buffers.size()));
  std::optional<BestSlots> best;
  for (int range = first; range <= last; ++range) {
    if (best && sweep.patience.over()) break;
    SlotsPacking packing = sweep.plainly ? pack_plain_slots({sweep.graph, sweep.nodes, sweep.order, lives, sweep.reuse, given, range})
                                         : pack_slots({sweep.reuse.buffers, given, {}, range});
    const std::vector<std::size_t> peaks = peaks_of(packing, sweep.graph.devices.size());
    const bool holds = std::all_of(peaks.begin(), peaks.end(), [&](std::size_t peak) { return peak <= options.capacity_bytes; });
    // What fits the capacity comes before what does not, then what is smaller.
    if (best && std::pair(!holds, packing.total_bytes) >= std::pair(!best->holds, best->packing.total_bytes)) continue;
    best = BestSlots{std::move(packing), range, holds};
  }
  return std::move(*best);
}

}  // namespace berth::internal::plan
