// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "berth/base/units.h"
#include "berth/export.h"

// A trace of the whole process: every allocation and free of every allocator, in a file that `berth replay` and
// read_trace (observe/trace_reader.h) read. BERTH_TRACE=file traces from the start of the process; code can
// trace a part of the program:
//
//     start_trace("step.trace");
//     run_one_step();
//     TraceSummary summary = stop_trace();
//
// Tracing is cheap enough to leave on: an event is a few bytes in a thread-local buffer, without a lock, a
// clock or a system call; a full buffer (4 KiB, about a thousand events) is written in one call. The file size
// is bounded: events past the limit are dropped and counted, and the count is in the file. A process that is
// killed leaves a file that is readable, and lacks what was in the buffers; one that exits writes them, and the
// end marker. A forked child has a file of its own, from its first event on. If the program closes file
// descriptors that it did not open, the trace ends there, and nothing is written into a file that reuses the
// descriptor.
//
// The file holds tags as words: `berth replay --html` shows the trace by tag.
namespace berth {

struct TraceFileOptions {
  std::size_t limit_bytes = 256_MiB;  // of the file, about sixty million events; at least 128 KiB
};

struct TraceSummary {
  std::uint64_t events = 0;   // written to the file
  std::uint64_t dropped = 0;  // past the limit, or after a write failed
  std::uint64_t bytes = 0;    // of the file
  int os_error = 0;           // errno of a write that failed, or 0; EBADF when the program closed the file
};

// Starts a trace in a new file; an existing file of that name is replaced. `%p` in the path stands for the
// process id. While another process writes its trace to that file, as one that started this process does, this
// one's is in PATH.PID, and so is that of a forked child if there is no `%p`. Throws AccessError(busy) when a
// trace is already running, ArgumentError when the file cannot be created or the limit is too small. Any
// thread.
BERTH_EXPORT void start_trace(const std::string& path, const TraceFileOptions& options = {});

// Ends the trace and closes the file. Events that other threads record concurrently may or may not be in it.
// Without a trace this does nothing.
BERTH_EXPORT TraceSummary stop_trace() noexcept;

BERTH_EXPORT bool is_tracing() noexcept;

}  // namespace berth
