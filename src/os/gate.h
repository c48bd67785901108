// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "base/relaxed.h"

// A lock for what one thread does all the time and others do almost never. The owner of a gate goes in and out with plain stores, a
// nanosecond each way; whoever wants all owners outside closes the group, which costs three system calls (membarrier) and a short wait.
// The owner's side has no fence at all: each of the three makes every other thread pass one.
//
//     owner:   if (gate.try_enter(group)) { ...; gate.leave(); }      else wait on the closer's mutex, and gate.try_lock(group)
//     closer:  group.close(); for (each gate) gate.shut(group); group.settle(); ...; for (each gate) gate.reopen(group); group.open();
//
// REQUIRES: closers exclude one another with a mutex, which an owner never takes while inside.
namespace berth::os {

// Whether the cheap way works here. Without membarrier (old or sandboxed kernels), and under the thread sanitizer, which cannot follow
// it, a gate is an ordinary spin lock.
bool has_asymmetric_fence() noexcept;

class GateGroup {
 public:
  GateGroup() noexcept {
    if (!has_asymmetric_fence()) state_.store(kSpinLocks);
  }

  void close() noexcept;
  void settle() noexcept;  // after this, what the owners did before they left is visible
  void open() noexcept;    // what the closer did is visible to whoever enters next
  bool has_spin_locks() const noexcept { return (state_.load() & kSpinLocks) != 0; }

 private:
  friend class Gate;
  static constexpr std::uint8_t kClosed = 1;
  static constexpr std::uint8_t kSpinLocks = 2;  // entering is never cheap here

  Relaxed<std::uint8_t> state_;  // 0: open, and cheap
};

class Gate {
 public:
  // The cheap way in and out. False: the group is closed, or has spin locks.
  bool try_enter(const GateGroup& group) noexcept {
    inside_.store(1);
    // Only the compiler is kept from moving the load up. A closer that does not see `inside_` after its membarrier has made this load
    // come after its own store.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    const std::uint8_t state = group.state_.load();
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (state == 0) [[likely]]
      return true;
    inside_.store(0);
    return false;
  }

  void leave() noexcept {
    std::atomic_signal_fence(std::memory_order_seq_cst);  // the closer's second membarrier does the rest
    inside_.store(0);
  }

  // The way that works everywhere. False: the group is closed.
  bool try_lock(const GateGroup& group) noexcept { return group.has_spin_locks() ? spin() : try_enter(group); }
  void unlock(const GateGroup& group) noexcept {
    if (group.has_spin_locks())
      locked_.store(false, std::memory_order_release);
    else
      leave();
  }

  // REQUIRES: the group is closed. Returns when the owner is outside; it stays there until reopen().
  void shut(const GateGroup& group) noexcept;
  void reopen(const GateGroup& group) noexcept {
    if (group.has_spin_locks()) unlock(group);
  }

 private:
  bool spin() noexcept;

  Relaxed<std::uint8_t> inside_;
  std::atomic<bool> locked_{false};  // where gates are spin locks
};

}  // namespace berth::os
