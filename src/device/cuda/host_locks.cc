// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/host_locks.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <new>

#include "device/address_number.h"
#include "os/lock/mutex.h"

namespace berth::internal::device::cuda {

namespace {

struct HostLocks {
  os::Mutex mutex;
  std::map<std::uintptr_t, std::size_t> all BERTH_GUARDED_BY(mutex);  // bytes, by first address
};

// Never destroyed: memory may be freed during static destruction.
HostLocks& locks() noexcept {
  static auto* const made = new HostLocks;
  return *made;
}

}  // namespace

bool note_host_lock(const void* address, std::size_t bytes) noexcept {
  try {
    HostLocks& known = locks();
    const os::Lock lock(known.mutex);
    known.all[number(address)] = bytes;
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void forget_host_lock(const void* address) noexcept {
  HostLocks& known = locks();
  const os::Lock lock(known.mutex);
  known.all.erase(number(address));
}

std::size_t host_run(const void* address, std::size_t bytes) noexcept {
  HostLocks& known = locks();
  const os::Lock lock(known.mutex);
  const auto next = known.all.upper_bound(number(address));
  if (next != known.all.begin()) {
    const auto& [first, length] = *std::prev(next);
    const std::size_t inside = number(address) - first;
    if (inside < length) return std::min(bytes, length - inside);
  }
  return next == known.all.end() ? bytes : std::min<std::size_t>(bytes, next->first - number(address));
}

}  // namespace berth::internal::device::cuda
