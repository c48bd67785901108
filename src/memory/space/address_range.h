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
  // Slabs below, large blocks above, so that long-lived slabs do not fragment those; where one part is full,
  // both use the other.
  std::size_t split = 0;
  std::size_t most_bytes = 0;  // that can have memory at one time
};

// Serializes the opening of a range: several threads that each reserve all the addresses they can get would
// leave the first fewer than it could have had. The pool's mutex guards it.
class OpeningTurn {
 public:
  // Waits until no other thread holds it. A forked child does not wait for a thread of its parent.
  void take(os::Mutex& mutex) noexcept BERTH_REQUIRES(mutex);
  void end() noexcept;

 private:
  std::uint64_t owner_ = 0;  // the process whose thread holds it, as fork_generation() + 1
  os::Condition ended_;
};

// Reserves as many addresses as the device's memory, or a limit below it, calls for, or as are available. Calls
// the device.
Result<AddressRange> reserve_addresses(Backend& backend, std::size_t page_bytes, std::size_t limit_bytes) noexcept;

}  // namespace berth::internal::memory
