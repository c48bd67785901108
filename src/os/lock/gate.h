// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "base/relaxed.h"

// An asymmetric (biased) lock, for data that one thread accesses all the time and others almost never. The
// owner of a gate enters and leaves with plain stores, about a nanosecond for both; a closer, which excludes
// the owners of many gates at once, pays for three process-wide memory barriers.
//
//     owner:   if (gate.approach() != 0) { ...; gate.leave(); }
//              else gate.leave(), wait on the closers' mutex, and gate.try_lock()
//     closer:  for (each gate) gate.close();
//              fence_all_threads();      // each owner sees the gate closed, or is seen to be inside
//              for (each gate) gate.drain();
//              fence_all_threads();      // what the owners wrote before they left is visible
//              ...
//              fence_all_threads();      // what the closer wrote is visible to owners that enter next
//              for (each gate) gate.open();
//
// REQUIRES: closers exclude one another with a mutex, which an owner never takes while inside.
namespace berth::internal::os {

// Whether there is such a fence (membarrier). Without it (old or sandboxed kernels), and under ThreadSanitizer,
// which does not model it, a gate is an ordinary spin lock.
bool has_fence_for_all_threads() noexcept;
bool fence_all_threads() noexcept;  // false: the kernel refuses it since (a seccomp filter)

// The owner reads the pass when it enters: a number that the closers choose, 0 when the gate is closed. The
// owner has to read a limit anyway, so one load serves both.
class Gate {
 public:
  // REQUIRES: pass > 0.
  explicit Gate(std::uint64_t pass) noexcept : open_pass_(has_fence_for_all_threads() ? pass : kSpinLock) {
    if (!is_spin_lock()) pass_.store(pass);
  }

  // The fast path: announces the owner, and only then reads the pass. With a pass of 0 the owner must leave at
  // once.
  std::uint64_t approach() noexcept {
    inside_.store(reinterpret_cast<std::uintptr_t>(this));  // anything but 0
    // Compiler barriers only: neither the load nor what follows it may be moved up. The closers' fence orders
    // the processor.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    const std::uint64_t pass = pass_.load();
    std::atomic_signal_fence(std::memory_order_seq_cst);
    return pass;
  }
  void leave() noexcept {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    inside_.store(0);
  }

  // The portable path. False: the gate is closed.
  bool try_lock() noexcept {
    if (is_spin_lock()) return spin();
    if (approach() != 0) return true;
    leave();
    return false;
  }
  void unlock() noexcept {
    if (is_spin_lock())
      locked_.store(false, std::memory_order_release);
    else
      leave();
  }

  void close() noexcept {
    if (!is_spin_lock()) pass_.store(0);
  }
  bool is_spin_lock() const noexcept { return open_pass_ == kSpinLock; }
  void drain() noexcept;  // waits until the owner has left
  void open() noexcept {
    if (is_spin_lock())
      unlock();
    else
      pass_.store(open_pass_);
  }

 private:
  static constexpr std::uint64_t kSpinLock = 0;

  bool spin() noexcept;

  Relaxed<std::uint64_t> inside_;    // written by the owner
  Relaxed<std::uint64_t> pass_;      // written by the closers
  const std::uint64_t open_pass_;    // when the gate is open
  std::atomic<bool> locked_{false};  // when the gate is a spin lock
};

}  // namespace berth::internal::os
