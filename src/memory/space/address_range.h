// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "berth/base/result.h"
#include "berth/device/backend.h"
#include "os/lock/mutex.h"

// The addresses of a pool.
namespace berth::internal::memory {

struct AddressRange {
  std::byte* base = nullptr;
  std::size_t bytes = 0;
  std::size_t split = 0;  // slabs below, large blocks above: a long-lived slab is not to sit among those
};

// Whose turn it is to open one: several threads that each reserve all the addresses they can get would leave
// the first fewer than it could have had. The pool's mutex guards it.
class OpeningTurn {
 public:
  // Waits until no other thread has it. A forked child does not wait for a thread of its parent.
  void take(os::Mutex& mutex) noexcept BERTH_REQUIRES(mutex);
  void end() noexcept;

 private:
  std::uint64_t owner_ = 0;  // the process whose thread has it, as fork_generation() + 1
  os::Condition ended_;
};

// As many addresses as the device's memory makes sensible, or as there are. Goes to the device.
Result<AddressRange> reserve_addresses(Backend& backend, std::size_t page_bytes) noexcept;

}  // namespace berth::internal::memory
