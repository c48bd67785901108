// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/allowance.h"
#include "berth/base/checked.h"
#include "plan/verify/judge.h"

namespace berth::internal::plan::verify {

namespace {

using enum PlanProblem::Kind;

std::size_t needed_alignment(const GraphValue& value, std::size_t least) {
  if (value.alignment != 0) return std::max(value.alignment, least);
  return std::max(value.dtype ? alignment_of(*value.dtype) : 1, least);
}

void check_location(Judge& judge, ValueId v, const ValueLocation& location) {
  const GraphValue& value = judge.graph.values[v];
  const PlanArena& arena = judge.plan.arenas[value.device];
  // What is kept has the alignment that its own plan gave it.
  const bool kept = location.reuse == Reuse::kept;
  const std::size_t needed = needed_alignment(value, kept ? 1 : judge.plan.alignment);
  if (kept ? !is_power_of_two(location.alignment) || location.alignment < needed : location.alignment != needed)
    return judge.say(alignment, judge.value(v), " is aligned to ", location.alignment, " and needs ", needed);
  if (location.offset % location.alignment != 0)
    judge.say(alignment, judge.value(v), " lies at ", location.offset, ", not a multiple of ", location.alignment);
  if (location.extent_bytes != try_align_up(judge.bytes(v), location.alignment))
    judge.say(alignment, judge.value(v), " of ", judge.bytes(v), " bytes has an extent of ", location.extent_bytes);
  if (!fits(location.offset, location.extent_bytes, arena.bytes))
    judge.say(bounds, judge.value(v), " lies at ", location.offset, " with ", location.extent_bytes, " bytes, outside the arena of ",
              arena.bytes);
  if (value.fixed_offset && *value.fixed_offset != location.offset && judge.bytes(v) != 0)
    judge.say(bounds, judge.value(v), " lies at ", location.offset, " and is fixed at ", *value.fixed_offset);
}

void check_slot(Judge& judge, ValueId v, const ValueLocation& location) {
  if (location.extent_bytes == 0 && location.slot == kNoSlot) return;
  if (location.slot >= judge.plan.slots.size())
    return judge.say(bounds, judge.value(v), " is in slot ", location.slot, " of ", judge.plan.slots.size());
  const PlanSlot& slot = judge.plan.slots[location.slot];
  if (location.extent_bytes == 0) return;
  if (slot.device != judge.graph.values[v].device || location.offset < slot.offset ||
      !fits(location.offset - slot.offset, location.extent_bytes, slot.bytes))
    judge.say(bounds, judge.value(v), " does not lie in its slot ", location.slot);
}

void check_slots(Judge& judge) {
  const std::vector<PlanSlot>& slots = judge.plan.slots;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].device >= judge.plan.arenas.size() || !fits(slots[i].offset, slots[i].bytes, judge.plan.arenas[slots[i].device].bytes))
      judge.say(bounds, "slot ", i, " lies outside its arena");
    else if (slots[i].bytes != 0)
      order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return slots[a].device != slots[b].device ? slots[a].device < slots[b].device : slots[a].offset < slots[b].offset;
  });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const PlanSlot& before = slots[order[i - 1]];
    const PlanSlot& slot = slots[order[i]];
    if (slot.device == before.device && slot.offset - before.offset < before.bytes)
      judge.say(overlap, "slots ", order[i - 1], " and ", order[i], " overlap");
  }
}

// Each arena is within its capacity, and their sum does not overflow.
void check_arenas(Judge& judge) {
  std::size_t sum = 0;
  for (std::size_t device = 0; device < judge.plan.arenas.size(); ++device) {
    const PlanArena& arena = judge.plan.arenas[device];
    if (arena.bytes > judge.plan.capacity_bytes || arena.bytes > kMaxBytes - sum || arena.lower_bound_bytes > kMaxBytes ||
        arena.naive_bytes > kMaxBytes)
      return judge.say(bounds, "the arena of device ", device, " has ", arena.bytes, " bytes, past its capacity");
    sum += arena.bytes;
  }
}

}  // namespace

void check_locations(Judge& judge) {
  check_arenas(judge);
  check_slots(judge);
  for (ValueId v = 0; v < judge.facts.size(); ++v) {
    const ValueLocation& location = judge.plan.locations[v];
    base::checkpoint();
    if (!location.planned()) continue;
    check_location(judge, v, location);
    if (!judge.plan.slots.empty() || location.slot != kNoSlot) check_slot(judge, v, location);
  }
}

}  // namespace berth::internal::plan::verify
