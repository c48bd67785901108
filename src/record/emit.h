// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/relaxed.h"
#include "berth/record/record.h"
#include "record/trace_tap.h"

// The library's side of records: `if (is_recording()) [[unlikely]] emit({...});`
namespace berth {

// Who wants records: 1 for the trace file, kSlowWatcher for each sink that is attached and for the check of streams. Where only the trace
// runs, requests and frees take the short way, and are written down on it. Relaxed, as all loads here: a record made while one is being
// attached may go either way.
inline constinit Relaxed<std::uint32_t> g_watchers;
inline constexpr std::uint32_t kSlowWatcher = 1U << 8;
inline constinit Relaxed<std::uint32_t> g_sink_count;

inline bool is_recording() noexcept { return g_watchers.load() != 0; }

// Whether the trace is the only one.
inline bool is_only_traced() noexcept { return g_watchers.load() - 1 < kSlowWatcher - 1; }

inline bool has_sinks() noexcept { return g_sink_count.load() != 0; }

// To the sinks. An allocation or a free goes to the trace as well, by trace_tap.h, which has a few nanoseconds for it, where sinks have a
// lock and a clock.
void emit(Record record) noexcept;

}  // namespace berth
