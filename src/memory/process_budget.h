// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "berth/device/backend.h"
#include "berth/memory/out_of_memory.h"
#include "memory/budget.h"

// What the process has committed of each memory, and through which allocators. Strategies claim here what they
// commit. Any thread.
namespace berth {
class Allocator;
}

namespace berth::internal::memory {

// What every strategy returns when the process's limit is reached.
inline constexpr Failure kOverProcessLimit{ErrorCode::out_of_memory, 0, "the process's limit", Refusal::process_limit};

// The budget of the memory behind a device: one for all host memory, else one for each device. Never destroyed.
// Throws ArgumentError when the environment variable that sets its limit is malformed.
Budget& process_budget(const Backend& backend);

// Registers a strategy, for as long as it lives, with those who need memory that it has cached.
template <class Strategy>
std::shared_ptr<Strategy> enlisted(std::shared_ptr<Strategy> strategy);
enum class Trimmed : bool { at_need, never };  // whether others may release its cache
void enlist(const std::shared_ptr<Allocator>& allocator, Trimmed trimmed = Trimmed::at_need);

// Releases the caches of allocators of this memory until there is room. No lock may be held. Returns whether
// there is more room than before, or enough.
bool make_room_in_process(const Backend& backend, std::size_t bytes);

// All live strategies of the process, oldest first. They may be the last handles: drop them without a lock
// held.
std::vector<std::shared_ptr<Allocator>> strategies_of_process();

void explain_process_limit(const Backend& backend, OutOfMemoryReport& report);

template <class Strategy>
std::shared_ptr<Strategy> enlisted(std::shared_ptr<Strategy> strategy) {
  enlist(strategy);
  return strategy;
}

}  // namespace berth::internal::memory
