// SPDX-License-Identifier: Apache-2.0
#include "os/gate.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

namespace berth::os {

namespace {

bool membarrier(int command) noexcept { return syscall(SYS_membarrier, command, 0U, 0) == 0; }

// Returns when every thread of the process has passed a full barrier.
bool barrier_on_all_threads() noexcept {
  if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) return true;
  // A forked child may have to register again.
  return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) && membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

}  // namespace

bool has_asymmetric_fence() noexcept {
  static const bool has = !kThreadSanitizer && barrier_on_all_threads();
  return has;
}

void GateGroup::close() noexcept {
  state_.store(state_.load() | kClosed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  settle();
}

void GateGroup::settle() noexcept {
  // It worked when the group was made; a filter that a program puts up later, and that refuses it, is the one thing that could change it.
  // MEMBARRIER_CMD_GLOBAL is the slow way to the same end.
  if (!has_spin_locks() && !barrier_on_all_threads()) membarrier(MEMBARRIER_CMD_GLOBAL);
}

void GateGroup::open() noexcept {
  settle();
  state_.store(state_.load() & kSpinLocks);
}

bool Gate::spin() noexcept {
  while (locked_.exchange(true, std::memory_order_acquire)) sched_yield();
  return true;
}

void Gate::shut(const GateGroup& group) noexcept {
  if (group.has_spin_locks())
    spin();
  else
    while (inside_.load() != 0) sched_yield();
}

}  // namespace berth::os
