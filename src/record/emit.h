// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/relaxed.h"
#include "berth/record/record.h"
#include "record/trace_tap.h"

// How the library emits records: `if (is_recording()) [[unlikely]] emit({...});`. Any thread.
namespace berth::internal::record {

// The number of observers: 1 for each light one (the trace file, the tally, a sink for copies alone),
// kSlowWatcher for each sink for blocks and for race detection. While all observers are light, allocations and
// frees stay on the fast path and are recorded there. Relaxed, as all loads here: a record made while an
// observer is being attached may or may not reach it.
inline constinit Relaxed<std::uint32_t> g_watchers;
inline constexpr std::uint32_t kSlowWatcher = 1U << 8;
inline constinit Relaxed<std::uint32_t> g_block_sinks;
inline constinit Relaxed<std::uint32_t> g_copy_sinks;

inline bool is_recording() noexcept { return g_watchers.load() != 0; }

// Whether there are observers, all of them light.
inline bool is_only_lightly_watched() noexcept { return g_watchers.load() - 1 < kSlowWatcher - 1; }

inline bool has_block_sinks() noexcept { return g_block_sinks.load() != 0; }
inline bool has_copy_sinks() noexcept { return g_copy_sinks.load() != 0; }

// Delivers a record to the sinks that want it. The trace and the tally get allocations and frees separately,
// through trace_tap.h and tally.h, which take a few nanoseconds, while sinks cost a lock and a clock.
void emit(Record record) noexcept;

}  // namespace berth::internal::record
