// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>

#include "berth/memory/allocator.h"

// PoolOptions::background_trim: a thread that calls `trim_idle` for a pool that nobody calls. It keeps the pool alive
// only while it trims, and ends after it. A forked child has none for the pools that it inherited.
namespace berth::internal::memory {

// Calls it once in each period. Throws std::system_error when there can be no thread.
void trim_in_background(const std::shared_ptr<Allocator>& pool, std::chrono::milliseconds period);

}  // namespace berth::internal::memory
