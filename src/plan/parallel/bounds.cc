// SPDX-License-Identifier: Apache-2.0
#include "plan/parallel/bounds.h"

#include <algorithm>

#include "plan/pack/packer.h"
#include "plan/parallel/conflicts.h"

namespace berth::internal::plan::parallel {

namespace {

constexpr std::size_t kMostShown = std::size_t{1} << 14;  // buffers in a proof: the verifier looks at no more

// The end of a value's own bytes: a view has no padding.
std::size_t own_end(const ValueLocation& location, const Life& life) {
  return location.offset + (location.reuse == Reuse::view ? life.bytes : location.extent_bytes);
}

void set_bytes(const PlanTables& plan, const std::vector<Life>& lives, std::vector<PackBuffer>& buffers) {
  std::vector<std::size_t> low(buffers.size(), SIZE_MAX);
  std::vector<std::size_t> high(buffers.size(), 0);
  for (ValueId v = 0; v < plan.locations.size(); ++v) {
    const ValueLocation& location = plan.locations[v];
    if (!location.planned()) continue;
    PackBuffer& buffer = buffers[location.buffer];
    buffer.alignment = std::max<std::size_t>(buffer.alignment, location.alignment);
    low[location.buffer] = std::min(low[location.buffer], location.offset);
    high[location.buffer] = std::max(high[location.buffer], own_end(location, lives[v]));
  }
  for (std::size_t i = 0; i < low.size(); ++i)
    if (low[i] < high[i]) buffers[i].bytes = align_offset(high[i] - low[i], buffers[i].alignment);
}

// The buffers of a plan, with all that uses and conflicts look at.
ReuseResult reuse_of(const Graph& graph, const std::vector<Life>& lives, const PlanTables& plan) {
  ReuseResult out;
  for (ValueId v = 0; v < plan.locations.size(); ++v) {
    const ValueLocation& location = plan.locations[v];
    out.values.push_back({0, location.with, location.buffer, location.reuse});
    if (!location.planned()) continue;
    if (location.buffer >= out.buffers.size()) out.buffers.resize(location.buffer + std::size_t{1}, {.begin = UINT32_MAX});
    PackBuffer& buffer = out.buffers[location.buffer];
    buffer.device = static_cast<std::uint16_t>(graph.values[v].device);
    buffer.begin = std::min<std::uint32_t>(buffer.begin, lives[v].begin);
    buffer.end = std::max<std::uint32_t>(buffer.end, lives[v].end);
  }
  set_bytes(plan, lives, out.buffers);
  return out;
}

// A value of each buffer: the first.
std::vector<ValueId> values_of(const Antichain& antichain, const PlanTables& plan) {
  std::vector<bool> wanted(plan.locations.size(), false);
  for (const std::uint32_t buffer : antichain.buffers) wanted[buffer] = true;
  std::vector<ValueId> values;
  for (ValueId v = 0; v < plan.locations.size(); ++v) {
    const ValueLocation& location = plan.locations[v];
    if (!location.planned() || !wanted[location.buffer]) continue;
    values.push_back(v);
    wanted[location.buffer] = false;
  }
  return values;
}

}  // namespace

void raise_bounds(const Graph& graph, const std::vector<Life>& lives, const std::vector<std::vector<NodeId>>& before, PlanTables& plan) {
  HappensBefore reach(plan.nodes, before);
  for (const PlanEdge& edge : plan.edges) reach.add(edge);
  const ReuseResult reuse = reuse_of(graph, lives, plan);
  const std::vector<BufferUses> uses = find_uses(graph, plan.nodes, lives, reuse, reach);
  for (std::uint32_t device = 0; device < plan.arenas.size(); ++device) {
    PlanArena& arena = plan.arenas[device];
    if (arena.bytes == arena.lower_bound_bytes) continue;
    const Antichain antichain = heaviest_antichain(Conflicts(reuse.buffers, uses, device, reach), reuse.buffers);
    // Edges that a packing needs let buffers share what is written late of one of them, such as the rest of a join:
    // then the sum of whole buffers is no bound.
    if (antichain.bytes <= arena.lower_bound_bytes || antichain.bytes > arena.bytes || antichain.buffers.size() > kMostShown) continue;
    arena.lower_bound_bytes = antichain.bytes;
    arena.proof = {BoundProof::By::unordered, {}, values_of(antichain, plan)};
  }
}

}  // namespace berth::internal::plan::parallel
