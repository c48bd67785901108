// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "berth/export.h"
#include "berth/memory/trace.h"

// Reads a trace: the allocations and frees of a program, in order. Two forms, told apart by their first bytes:
//
// - text, one event a line, `op,id,bytes,stream`: op is `a` (allocate) or `f` (free, whose bytes and stream say nothing). A first line with
//   those four words may stand above; lines may end as on Windows. Numbers may be used again for another block once freed. Where the first
//   line is `op,id,bytes,stream,tag`, what follows the fourth comma is the block's tag, to the end of the line; it may be left out.
// - the binary form that BERTH_TRACE writes (record/trace_file.h).
//
//     RecordedTrace trace = read_trace(bytes, "model.csv");
//     ReplayResult result = replay(plan_replay(trace.events), {.device = "cpu"});      // observe/replay.h
//
// Whatever the bytes hold, the answer is a trace that makes sense or a FormatError that says where it does not: nothing is guessed.
namespace berth {

struct RecordedTrace {
  std::vector<TraceEvent> events;  // a free comes after its allocation; no block is allocated twice or freed twice

  // What blocks are for, where the trace says so: for each event an index into `words`, of which the first is "". Else both are empty.
  std::vector<std::uint16_t> tags = {};
  std::vector<std::string> words = {};

  // Of the binary form only; text is refused instead.
  std::uint64_t dropped = 0;   // events that the writer had no room for
  std::uint64_t unpaired = 0;  // frees of blocks whose allocation is not in the trace: left out of `events`
  bool complete = true;        // false: the writer never came to the end, as when its process was killed
};

// `name` is for messages. Throws FormatError: a line (fact "line") or place (fact "offset") that breaks the rules, a free of a block that
// does not live, an allocation of one that does, more bytes than berth handles, more than 65,535 different tags.
BERTH_EXPORT RecordedTrace read_trace(std::string_view bytes, std::string_view name = "the trace");

}  // namespace berth
