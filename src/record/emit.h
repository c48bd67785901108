// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/relaxed.h"
#include "berth/record/record.h"
#include "record/trace_tap.h"

// The library's side of records: `if (is_recording()) [[unlikely]] emit({...});`
namespace berth::internal::record {

// Who wants records: 1 for each that is light (the trace file, the tally, a sink for copies alone), kSlowWatcher for each sink that blocks are
// told to and for the check of streams. Where only light ones watch, requests and frees take the short way, and are written down on it. Relaxed,
// as all loads here: a record made while one is being attached may go either way.
inline constinit Relaxed<std::uint32_t> g_watchers;
inline constexpr std::uint32_t kSlowWatcher = 1U << 8;
inline constinit Relaxed<std::uint32_t> g_block_sinks;
inline constinit Relaxed<std::uint32_t> g_copy_sinks;

inline bool is_recording() noexcept { return g_watchers.load() != 0; }

// Whether someone watches, and all who do are light.
inline bool is_only_lightly_watched() noexcept { return g_watchers.load() - 1 < kSlowWatcher - 1; }

inline bool has_block_sinks() noexcept { return g_block_sinks.load() != 0; }
inline bool has_copy_sinks() noexcept { return g_copy_sinks.load() != 0; }

// To the sinks that are for it. An allocation or a free goes to the trace and to the tally as well, by trace_tap.h and tally.h, which have a few
// nanoseconds for it, where sinks have a lock and a clock.
void emit(Record record) noexcept;

}  // namespace berth::internal::record
