// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "berth/base/units.h"
#include "berth/export.h"

// A trace of the whole process: every allocation and free of every allocator, in a file that `berth replay` and read_trace
// (observe/trace_reader.h) read. On from the start with BERTH_TRACE=file, or for a part of the program in code:
//
//     start_trace("step.trace");
//     run_one_step();
//     TraceSummary summary = stop_trace();
//
// Made to be left on: an event is a few bytes in a buffer of the thread's own, without a lock, a clock or a system call; a full buffer
// (64 KiB) is written at once. The file is bounded: what has no room is counted, and the count is in the file. A process that is killed
// leaves a file that can be read up to what was written; one that exits writes the rest and the end. A forked child is not traced. A program
// that closes descriptors it did not open ends its trace there, and nothing is written into what it opens in their place.
//
// Tags are in it, as words: `berth replay --html` shows the trace by tag.
namespace berth {

struct TraceFileOptions {
  std::size_t limit_bytes = 256_MiB;  // of the file: some sixty million events; at least 128 KiB
};

struct TraceSummary {
  std::uint64_t events = 0;   // in the file
  std::uint64_t dropped = 0;  // past the limit, or after a failed write
  std::uint64_t bytes = 0;    // of the file
  int os_error = 0;           // errno of a write that failed, or 0; EBADF when the program closed the file
};

// Begins a trace in a new file; one of that name is replaced. `%p` in the path stands for the process id. Throws AccessError(busy) when
// there is a trace already, ArgumentError when the file cannot be made or the limit is too small. Any thread.
BERTH_EXPORT void start_trace(const std::string& path, const TraceFileOptions& options = {});

// Ends it and closes the file. Events that other threads record at that moment may go either way. Without a trace it does nothing.
BERTH_EXPORT TraceSummary stop_trace() noexcept;

BERTH_EXPORT bool is_tracing() noexcept;

}  // namespace berth
