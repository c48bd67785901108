// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "berth/record/record.h"
#include "record/trace_tap.h"

// The library's side of records: `if (is_recording()) [[unlikely]] emit({...});`
namespace berth {

// How many want records: the sinks that are attached, and the trace file. Relaxed, as all loads here: a record made while one is being
// attached may go either way.
inline std::atomic<int> g_watchers{0};
inline std::atomic<int> g_sink_count{0};

inline bool is_recording() noexcept { return g_watchers.load(std::memory_order_relaxed) != 0; }

// To the sinks.
void deliver(Record record) noexcept;

// The trace first, and by a way of its own: it has a few nanoseconds for a record, and sinks have a lock and a clock.
inline void emit(const Record& record) noexcept {
  const std::uint64_t session = g_trace_session.load(std::memory_order_relaxed);
  if (session != 0 && (record.kind == RecordKind::allocated || record.kind == RecordKind::freed))
    trace_block(session, {record.kind == RecordKind::allocated, record.allocator_id, record.serial, record.bytes, record.stream_id});
  if (g_sink_count.load(std::memory_order_relaxed) != 0) deliver(record);
}

}  // namespace berth
