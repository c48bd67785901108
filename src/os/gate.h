// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "base/relaxed.h"

// A lock for what one thread does all the time and others do almost never. The owner of a gate goes in and out with plain stores, a
// nanosecond both ways; whoever wants the owners of many gates outside makes every thread of the process pass a fence, three times.
//
//     owner:   if (gate.try_enter()) { ...; gate.leave(); }      else wait on the closers' mutex, and gate.try_lock()
//     closer:  for (each gate) gate.close();
//              fence_all_threads();                              // an owner has seen that it is closed, or can be seen to be inside
//              for (each gate) gate.drain();
//              fence_all_threads();                              // what the owners did before they left is visible
//              ...
//              fence_all_threads();                              // what the closer did is visible to whoever enters next
//              for (each gate) gate.open();
//
// REQUIRES: closers exclude one another with a mutex, which an owner never takes while inside.
namespace berth::os {

// Whether there is such a fence (membarrier). Without it (old or sandboxed kernels), and under the thread sanitizer, which cannot follow
// it, a gate is an ordinary spin lock.
bool has_fence_for_all_threads() noexcept;
void fence_all_threads() noexcept;

class Gate {
 public:
  Gate() noexcept {
    if (!has_fence_for_all_threads()) state_.store(kSpinLock);
  }

  // The cheap way in and out. False: the gate is closed, or a spin lock.
  bool try_enter() noexcept {
    inside_.store(1);
    // Only the compiler is kept from moving the load up, and what follows above it.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    const std::uint8_t state = state_.load();
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (state == kOpen) [[likely]]
      return true;
    inside_.store(0);
    return false;
  }
  void leave() noexcept {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    inside_.store(0);
  }

  // The way that works everywhere. False: the gate is closed.
  bool try_lock() noexcept { return is_spin_lock() ? spin() : try_enter(); }
  void unlock() noexcept {
    if (is_spin_lock())
      locked_.store(false, std::memory_order_release);
    else
      leave();
  }

  void close() noexcept {
    if (!is_spin_lock()) state_.store(kClosed);
  }
  bool is_spin_lock() const noexcept { return state_.load() == kSpinLock; }
  void drain() noexcept;  // returns when the owner is outside
  void open() noexcept {
    if (is_spin_lock())
      unlock();
    else
      state_.store(kOpen);
  }

 private:
  static constexpr std::uint8_t kOpen = 0;
  static constexpr std::uint8_t kClosed = 1;
  static constexpr std::uint8_t kSpinLock = 2;

  bool spin() noexcept;

  Relaxed<std::uint8_t> inside_;     // the owner's
  Relaxed<std::uint8_t> state_;      // the closers'
  std::atomic<bool> locked_{false};  // where it is a spin lock
};

}  // namespace berth::os
