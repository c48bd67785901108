// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "berth/record/record.h"

// The library's side of records: `if (is_recording()) [[unlikely]] emit({...});`
namespace berth {

// How many sinks are attached. Relaxed: a record made while a sink is being attached may go either way.
inline std::atomic<int> g_sink_count{0};

inline bool is_recording() noexcept { return g_sink_count.load(std::memory_order_relaxed) != 0; }

void emit(Record record) noexcept;

}  // namespace berth
