// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "base/relaxed.h"

// A lock for what one thread does all the time and others do almost never. The owner of a gate goes in and out with plain stores, a
// nanosecond both ways; whoever wants the owners of many gates outside makes every thread of the process pass a fence, three times.
//
//     owner:   if (gate.approach() != 0) { ...; gate.leave(); }  else gate.leave(), wait on the closers' mutex, and gate.try_lock()
//     closer:  for (each gate) gate.close();
//              fence_all_threads();                              // an owner has seen that it is closed, or can be seen to be inside
//              for (each gate) gate.drain();
//              fence_all_threads();                              // what the owners did before they left is visible
//              ...
//              fence_all_threads();                              // what the closer did is visible to whoever enters next
//              for (each gate) gate.open();
//
// REQUIRES: closers exclude one another with a mutex, which an owner never takes while inside.
namespace berth::internal::os {

// Whether there is such a fence (membarrier). Without it (old or sandboxed kernels), and under the thread sanitizer, which cannot follow
// it, a gate is an ordinary spin lock.
bool has_fence_for_all_threads() noexcept;
void fence_all_threads() noexcept;

// What the owner reads on its way in is the pass, a number of the closers' choosing, 0 when the gate is closed: the owner has a limit to
// look at anyhow, and so looks once.
class Gate {
 public:
  // REQUIRES: pass > 0.
  explicit Gate(std::uint64_t pass) noexcept : open_pass_(has_fence_for_all_threads() ? pass : kSpinLock) {
    if (!is_spin_lock()) pass_.store(pass);
  }

  // The cheap way in and out: says that the owner is here, and only then reads the pass. With a pass of 0 the owner must leave at once.
  std::uint64_t approach() noexcept {
    inside_.store(reinterpret_cast<std::uintptr_t>(this));  // anything but 0
    // Only the compiler is kept from moving the load up, and what follows above it.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    const std::uint64_t pass = pass_.load();
    std::atomic_signal_fence(std::memory_order_seq_cst);
    return pass;
  }
  void leave() noexcept {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    inside_.store(0);
  }

  // The way that works everywhere. False: the gate is closed.
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
  void drain() noexcept;  // returns when the owner is outside
  void open() noexcept {
    if (is_spin_lock())
      unlock();
    else
      pass_.store(open_pass_);
  }

 private:
  static constexpr std::uint64_t kSpinLock = 0;

  bool spin() noexcept;

  Relaxed<std::uint64_t> inside_;    // the owner's
  Relaxed<std::uint64_t> pass_;      // the closers'
  const std::uint64_t open_pass_;    // of the open gate
  std::atomic<bool> locked_{false};  // where it is a spin lock
};

}  // namespace berth::internal::os
