// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <string>
#include <utility>

#include "berth/base/error.h"
#include "berth/observe/replay.h"
#include "berth/observe/trace_reader.h"
#include "fuzz/target.h"
#include "fuzz/words.h"

// Traces of allocations, as text and binary. What is accepted can be replayed, and written as text and read again it is
// the same.
namespace berth::testing::fuzz {
namespace {

using Operation = TraceEvent::Operation;

// With a number of its own for each block: allocators may give out equal ones.
std::string as_text(const Trace& trace) {
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> live;
  std::uint64_t last = 0;
  std::string out;
  for (const TraceEvent& event : trace.events) {
    const std::pair block(event.allocator_id, event.serial);
    const bool allocates = event.operation == Operation::allocate;
    if (allocates) require(live.try_emplace(block, ++last).second, "no block is allocated twice");
    const auto found = live.find(block);
    require(found != live.end(), "a free follows its allocation");
    out += (allocates ? "a," : "f,") + std::to_string(found->second) + ',' + std::to_string(allocates ? event.bytes : 0) + ',' +
           std::to_string(allocates ? event.stream_id : 0) + '\n';
    if (!allocates) live.erase(found);
  }
  return out;
}

void run(std::string_view bytes) {
  const Trace trace = read_trace(bytes);
  require(trace.tags.empty() || trace.tags.size() == trace.events.size(), "each event has a tag, or none");
  for (const std::uint16_t tag : trace.tags) require(tag < trace.words.size(), "a tag is one of the words");
  const std::string text = as_text(trace);
  require(as_text(read_trace(text)) == text, "a trace that was read is written and read again the same");
  const ReplayScript script = plan_replay(trace.events);
  require(script.steps.size() == trace.events.size() && script.blocks <= script.steps.size(), "a script has a step for each event");
}

const Registered traces({.name = "traces",
                         .run = run,
                         .words = text_words({"a,", "f,", "op,id,bytes,stream\n", "op,id,bytes,stream,tag\n", "berthtrc", "chnk"})});

}  // namespace
}  // namespace berth::testing::fuzz
