// SPDX-License-Identifier: Apache-2.0
#include "plan/packed.h"

#include <numeric>

namespace berth::internal::plan {

bool has_locations(const PlanTables& tables) noexcept {
  return tables.outcome == PlanOutcome::optimal || tables.outcome == PlanOutcome::feasible;
}

std::vector<std::size_t> Packed::peaks() const {
  std::vector<std::size_t> out;
  for (const PlanArena& arena : tables.arenas) out.push_back(arena.bytes);
  return out;
}

void Packed::set_peaks(const std::vector<std::size_t>& peaks) {
  total_bytes = std::accumulate(peaks.begin(), peaks.end(), std::size_t{0});
  tables.outcome = PlanOutcome::optimal;
  for (std::size_t device = 0; device < peaks.size(); ++device) {
    tables.arenas[device].bytes = peaks[device];
    if (peaks[device] > tables.arenas[device].lower_bound_bytes) tables.outcome = PlanOutcome::feasible;
  }
}

std::vector<ValueLocation> locations_of(const Packed& packed, const std::vector<ValueInBuffer>& values, const std::vector<Life>& lives) {
  std::vector<ValueLocation> locations(lives.size());
  for (ValueId v = 0; v < locations.size(); ++v) {
    ValueLocation& location = locations[v];
    location.reason = lives[v].reason;
    const ValueInBuffer& value = values[v];
    if (value.reuse == Reuse::kept && !has_locations(packed.tables)) location.reason = UnplannedReason::outside_range;
    if (value.reuse == Reuse::none || !has_locations(packed.tables)) continue;
    location.reuse = value.reuse;
    location.with = value.with;
    location.buffer = value.buffer;
    location.slot = packed.slot_of.empty() ? kNoSlot : packed.slot_of[value.buffer];
    location.offset = packed.offsets[value.buffer] + value.offset;
    location.extent_bytes = lives[v].extent_bytes();
    location.alignment = lives[v].alignment;
  }
  return locations;
}

}  // namespace berth::internal::plan
