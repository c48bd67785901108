// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "berth/record/tag.h"

// Where allocations and frees enter the trace file, before all sinks and at low cost: see
// record/trace_buffer.h. Any thread.
namespace berth::internal::record {

// The number of the running trace, 0 for none. Relaxed: an event during its start or stop may or may not be in
// it.
inline constinit std::atomic<std::uint64_t> g_trace_session{0};
inline bool is_traced() noexcept { return g_trace_session.load(std::memory_order_relaxed) != 0; }

// Add an allocation or a free to the running trace, if any. (Testing is_traced() first saves the call.)
void trace_allocation(std::uint64_t allocator_id, std::uint64_t serial, std::size_t bytes, std::uint64_t stream_id, Tag tag) noexcept;
void trace_free(std::uint64_t allocator_id, std::uint64_t serial) noexcept;

}  // namespace berth::internal::record
