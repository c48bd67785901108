// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "berth/device/backend.h"
#include "berth/memory/out_of_memory.h"
#include "memory/budget.h"

// What the process takes of each memory, and which allocators do. Strategies claim what they take from their device here.
namespace berth {
class Allocator;
}

namespace berth::internal::memory {

// What every strategy answers when the process's limit is reached.
inline constexpr Failure kOverProcessLimit{ErrorCode::out_of_memory, 0, "the process's limit", Refusal::process_limit};

// Of the memory behind a device: one for all host memory, else one for each device. Never destroyed. Throws ArgumentError when the
// variable that sets its limit makes no sense.
Budget& process_budget(const Backend& backend);

// Makes a strategy known, for as long as it lives, to those who need memory that it has cached.
template <class Strategy>
std::shared_ptr<Strategy> enlisted(std::shared_ptr<Strategy> strategy);
enum class Trimmed : bool { at_need, never };  // whether others may make it give up what it has cached
void enlist(const std::shared_ptr<Allocator>& allocator, Trimmed trimmed = Trimmed::at_need);

// Gives back what allocators of this memory have cached until there is room. No lock may be held. Says whether any went.
bool make_room_in_process(const Backend& backend, std::size_t bytes);

// Every strategy of the process that lives, the oldest first. Perhaps the last handles: to be let go of without a lock.
std::vector<std::shared_ptr<Allocator>> strategies_of_process();

void explain_process_limit(const Backend& backend, OutOfMemoryReport& report);

template <class Strategy>
std::shared_ptr<Strategy> enlisted(std::shared_ptr<Strategy> strategy) {
  enlist(strategy);
  return strategy;
}

}  // namespace berth::internal::memory
