// SPDX-License-Identifier: Apache-2.0
#include "os/lock/gate.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/lock/patience.h"

namespace berth::internal::os {

namespace {

bool membarrier(int command) noexcept { return syscall(SYS_membarrier, command, 0U, 0) == 0; }

bool try_fence_all_threads() noexcept {
  if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) return true;
  // The process has to register the first time, and possibly again in a forked child.
  return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) && membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

}  // namespace

bool has_fence_for_all_threads() noexcept {
  static const bool has = !kThreadSanitizer && try_fence_all_threads();
  return has;
}

bool fence_all_threads() noexcept {
  // It worked when the gates were made. Only a seccomp filter installed since then can reject it;
  // MEMBARRIER_CMD_GLOBAL is the slow equivalent.
  return !has_fence_for_all_threads() || try_fence_all_threads() || membarrier(MEMBARRIER_CMD_GLOBAL);
}

void Gate::drain() noexcept {
  if (is_spin_lock()) {
    spin();
    return;
  }
  for (Patience patience; inside_.load() != 0;) patience.wait();
}

bool Gate::spin() noexcept {
  for (Patience patience; locked_.exchange(true, std::memory_order_acquire);) patience.wait();
  return true;
}

}  // namespace berth::internal::os
