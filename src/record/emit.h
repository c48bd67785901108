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

inline bool has_sinks() noexcept { return g_sink_count.load(std::memory_order_relaxed) != 0; }

// To the sinks. An allocation or a free goes to the trace as well, by trace_block, which has a few nanoseconds for it, where sinks have a
// lock and a clock.
void emit(Record record) noexcept;

}  // namespace berth
