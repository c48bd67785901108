// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "berth/record/tag.h"

// Where records leave for the trace file. Ahead of all sinks, and cheap: see record/trace_buffer.h.
namespace berth::internal::record {

// The number of the trace that runs, 0 for none. Relaxed: a record made while one begins or ends may go either way.
inline constinit std::atomic<std::uint64_t> g_trace_session{0};
inline bool is_traced() noexcept { return g_trace_session.load(std::memory_order_relaxed) != 0; }

// Write an allocation or a free down, when a trace runs. (Asking first saves the call.)
void trace_allocation(std::uint64_t allocator_id, std::uint64_t serial, std::size_t bytes, std::uint64_t stream_id, Tag tag) noexcept;
void trace_free(std::uint64_t allocator_id, std::uint64_t serial) noexcept;

}  // namespace berth::internal::record
