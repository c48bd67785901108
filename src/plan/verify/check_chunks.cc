// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "berth/base/checked.h"
#include "plan/verify/judge.h"

namespace berth::internal::plan::verify {

namespace {

using enum PlanProblem::Kind;

using Chunks = std::vector<const PlanChunk*>;  // of one device, by offset

// Checks that the chunks are inside their arenas and capacities, sorted by offset, and disjoint.
std::vector<Chunks> sorted_chunks(Judge& judge) {
  std::vector<Chunks> by_device(judge.plan.arenas.size());
  for (std::size_t i = 0; i < judge.plan.chunks.size(); ++i) {
    const PlanChunk& chunk = judge.plan.chunks[i];
    if (chunk.device >= by_device.size()) {
      judge.say(bounds, "chunk ", i, " is on device ", chunk.device, " of ", by_device.size());
      continue;
    }
    if (chunk.bytes > chunk.capacity_bytes) judge.say(bounds, "chunk ", i, " has ", chunk.bytes, " bytes, past its capacity");
    if (!fits(chunk.offset, chunk.bytes, judge.plan.arenas[chunk.device].bytes)) judge.say(bounds, "chunk ", i, " lies outside its arena");
    Chunks& chunks = by_device[chunk.device];
    if (!chunks.empty() && (chunk.offset < chunks.back()->offset || chunk.offset - chunks.back()->offset < chunks.back()->bytes))
      judge.say(overlap, "chunk ", i, " begins before the end of the one before it");
    chunks.push_back(&chunk);
  }
  return by_device;
}

bool lies_in(const Chunks& chunks, const ValueLocation& location) {
  const auto after = std::upper_bound(chunks.begin(), chunks.end(), location.offset,
                                      [](std::size_t offset, const PlanChunk* chunk) { return offset < chunk->offset; });
  if (after == chunks.begin()) return false;
  const PlanChunk& chunk = **std::prev(after);
  return fits(location.offset - chunk.offset, location.extent_bytes, chunk.bytes);
}

}  // namespace

void check_chunks(Judge& judge) {
  if (judge.plan.chunks.empty()) return;
  if (!judge.plan.slots.empty()) return judge.say(shape, "a plan of slots has chunks");
  const std::vector<Chunks> by_device = sorted_chunks(judge);
  if (!judge.clean()) return;
  for (ValueId v = 0; v < judge.facts.size(); ++v) {
    const ValueLocation& location = judge.plan.locations[v];
    const Chunks& chunks = by_device[judge.graph.values[v].device];
    if (location.planned() && location.extent_bytes != 0 && !chunks.empty() && !lies_in(chunks, location))
      judge.say(bounds, judge.value(v), " lies at ", location.offset, " with ", location.extent_bytes, " bytes, not in one chunk");
  }
}

}  // namespace berth::internal::plan::verify
