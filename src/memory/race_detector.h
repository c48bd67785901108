// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>

#include "berth/memory/block.h"
#include "berth/memory/race_detector.h"

// The library's side of the check of streams: `if (is_detecting_races()) [[unlikely]] race_detector::touched(...);`
namespace berth::internal::memory {

inline std::atomic<bool> g_detects_races{false};

// Relaxed: what happens while it is being switched on may be seen or not.
inline bool is_detecting_races() noexcept { return g_detects_races.load(std::memory_order_relaxed); }

namespace race_detector {

void allocated(const Block& block, StreamRef stream) noexcept;
void used_on(const Block& block, StreamRef stream) noexcept;
// The same block, longer and with another serial.
void grown(const Block& block) noexcept;
// To be called before the block can be anyone else's. A block that is not live, or not known, is ignored.
void freed(const Block& block) noexcept;

// A stream (none: this thread, now) is about to be given work that reads or writes these bytes.
void touched(const void* begin, std::size_t bytes, Device device, StreamRef stream, bool writes) noexcept;

}  // namespace race_detector

}  // namespace berth::internal::memory
