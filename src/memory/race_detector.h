// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>

#include "berth/memory/block.h"
#include "berth/memory/race_detector.h"

// The internal side of race detection: `if (is_detecting_races()) [[unlikely]] race_detector::touched(...);`
// Any thread.
namespace berth::internal::memory {

inline std::atomic<bool> g_detects_races{false};

// relaxed: operations that run while it is being switched on may be seen or not.
inline bool is_detecting_races() noexcept { return g_detects_races.load(std::memory_order_relaxed); }

namespace race_detector {

void allocated(const Block& block, StreamRef stream) noexcept;
void used_on(const Block& block, StreamRef stream) noexcept;
// The same block, with more bytes and another serial.
void grown(const Block& block) noexcept;
// Call this before the block can be reused. A block that is not live, or not known, is ignored.
void freed(const Block& block) noexcept;

// A stream (null: this thread, now) is about to be given work that reads or writes these bytes.
void touched(const void* begin, std::size_t bytes, Device device, StreamRef stream, bool writes) noexcept;

}  // namespace race_detector

}  // namespace berth::internal::memory
