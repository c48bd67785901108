// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/read_limits.h"
#include "berth/export.h"
#include "berth/memory/trace.h"

// Reads a trace: the allocations and frees of a program, in order. There are two formats, distinguished by
// their first bytes:
//
// - text, one event a line, `op,id,bytes,stream`: op is `a` (allocate) or `f` (free, whose bytes and stream are
//   ignored). The first line may be a header with those four words; lines may end with CRLF. An id may be
//   reused for another block once freed. If the header is `op,id,bytes,stream,tag`, the rest of the line after
//   the fourth comma is the block's tag, which may be missing.
// - the binary format that BERTH_TRACE writes (record/trace_file.h).
//
//     Trace trace = read_trace(bytes, "model.csv");
//     ReplayResult result = replay(plan_replay(trace.events), {.device = "cpu"});      // observe/replay.h
//
// For any input, the result is a consistent trace or a FormatError with the position of the error: nothing is
// guessed. Any thread.
namespace berth {

struct Trace {
  std::vector<TraceEvent> events;  // frees follow their allocations; no block is allocated or freed twice

  // The tags of the blocks, if the trace has any: for each event an index into `words`, whose first element is
  // "". Else both are empty.
  std::vector<std::uint16_t> tags = {};
  std::vector<std::string> words = {};

  // Of the binary format only; the text format throws instead.
  std::uint64_t dropped = 0;   // events that the writer's buffers had no room for
  std::uint64_t unpaired = 0;  // frees whose allocation is not in the trace: left out of `events`
  bool complete = true;        // false: the writer did not finish, for example because its process was killed
};

// `name` is for messages. Throws FormatError: malformed input, with its line (fact "line") or position (fact
// "offset"), a free of a block that is not live, an allocation of one that is, more bytes than berth handles,
// more than 65,535 different tags; FormatError(limit_exceeded) for what takes more memory than `limits` allow.
BERTH_EXPORT Trace read_trace(std::string_view bytes, std::string_view name = "the trace", const ReadLimits& limits = {});

}  // namespace berth
