// SPDX-License-Identifier: Apache-2.0
#include "plan/parallel/found.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "plan/best_reuse.h"
#include "plan/bound_proof.h"
#include "plan/order.h"
#include "plan/parallel/reach.h"

namespace berth::internal::plan::parallel {

std::size_t sum_of(const std::vector<std::size_t>& peaks) noexcept { return std::accumulate(peaks.begin(), peaks.end(), std::size_t{0}); }

Found::Found(const PlannedRange& range, const PlanTables& like) : range_(range), blank_(blank(like)), best_(blank_) {}

PlanTables Found::blank(const PlanTables& like) const {
  PlanTables tables = like;
  tables.parallel = range_.options.parallel;
  tables.colours = range_.colours;
  tables.conservative = false;
  tables.outcome = PlanOutcome::unknown;
  tables.strategy.clear();
  tables.edges.clear();
  tables.slots.clear();
  tables.chunks.clear();
  for (PlanArena& arena : tables.arenas) arena.bytes = 0;
  for (ValueId v = 0; v < tables.locations.size(); ++v) {
    tables.locations[v] = {};
    tables.locations[v].reason = range_.lives[v].reason;
  }
  return tables;
}

bool Found::is_better(const std::vector<std::size_t>& peaks) const {
  return sum_of(peaks) < bytes_ && std::ranges::all_of(peaks, [&](std::size_t peak) { return peak <= range_.options.capacity_bytes; });
}

void Found::offer(std::string_view strategy, const PackedApart& packed, const std::vector<PlanEdge>& bought) {
  if (!is_better(packed.peaks)) return;
  PlanTables tables = blank_;
  tables.strategy = strategy;
  tables.outcome = PlanOutcome::feasible;
  tables.conservative = range_.is_conservative;
  tables.slots = packed.slots;
  tables.chunks = packed.chunks;
  place(packed, tables);
  set_arenas(packed, tables);
  if (!bought.empty()) {
    tables.edges = find_edges(range_.graph, tables);  // those that this packing needs
    if (tables.edges.size() > bought.size()) tables.edges = bought;
  }
  keep(std::move(tables));
}

void Found::offer_whole(PlanTables tables) {
  std::vector<std::size_t> peaks;
  for (const PlanArena& arena : tables.arenas) peaks.push_back(arena.bytes);
  if (tables.edges.size() > range_.options.most_edges || !is_better(peaks)) return;
  tables.parallel = range_.options.parallel;
  tables.colours = range_.colours;
  if (tables.outcome == PlanOutcome::optimal) tables.outcome = PlanOutcome::feasible;
  keep(std::move(tables));
}

void Found::place(const PackedApart& packed, PlanTables& tables) const {
  for (ValueId v = 0; v < range_.lives.size(); ++v) {
    const ValueInBuffer& value = packed.reuse->values[v];
    ValueLocation& location = tables.locations[v];
    if (value.reuse == Reuse::none) continue;
    location.reuse = value.reuse;
    location.with = value.with;
    location.buffer = value.buffer;
    location.slot = packed.slot_of.empty() ? kNoSlot : packed.slot_of[value.buffer];
    location.offset = packed.offsets[value.buffer] + value.offset;
    location.extent_bytes = range_.lives[v].extent_bytes();
    location.alignment = range_.lives[v].alignment;
  }
}

// Bounds by what is live at one step: in the order of the graph it is live at once.
void Found::set_arenas(const PackedApart& packed, PlanTables& tables) const {
  const std::size_t devices = range_.graph.devices.size();
  const std::vector<std::size_t> bounds = bounds_of(*packed.reuse, devices);
  const std::vector<BoundProof> proofs = find_bound_proofs(packed.reuse->buffers, devices);
  for (std::size_t device = 0; device < devices; ++device)
    tables.arenas[device] = {packed.peaks[device], bounds[device], 0, proofs[device]};
  for (const PackBuffer& buffer : packed.reuse->buffers) tables.arenas[buffer.device].naive_bytes += buffer.bytes;
}

void Found::keep(PlanTables tables) {
  bytes_ = 0;
  for (const PlanArena& arena : tables.arenas) bytes_ += arena.bytes;
  std::erase_if(trades_, [&](const EdgeTrade& one) { return one.edges >= tables.edges.size(); });
  trades_.push_back({tables.edges.size(), bytes_, path_lengths(range_.graph, range_.nodes, range_.before, tables.edges).longest});
  best_ = std::move(tables);
}

}  // namespace berth::internal::plan::parallel
