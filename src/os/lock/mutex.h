// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "base/annotations.h"
#include "base/relaxed.h"

// berth's mutex. It differs from std::mutex in two ways:
//
// - It survives fork. Every live Mutex is on a list; before a fork all of them are locked, and parent and child
//   unlock them afterwards, so a child never inherits a lock held by a thread it does not have. This needs the
//   house rule: a thread holds at most one Mutex, and creates or destroys none while holding one.
// - An uncontended lock is one compare-and-swap, an unlock one store and one load: less than half the cost of
//   the C library's. What makes a store suffice is that a waiter pays for both: it announces itself and fences
//   all threads (os/lock/gate.h) before it sleeps in the kernel, so that the holder's unlock is seen, or sees
//   it.
//
// A waiter spins for some microseconds and then sleeps, whatever its priority: a real-time thread never keeps
// the holder from running. While one that was woken is on its way back, others may have the mutex, and wake
// nobody: a mutex that threads need all the time is not passed from sleeper to sleeper. A waiter that could not
// have it for a millisecond is handed it by the next holder. Waiting is no cancellation point.
//
// A LeafMutex is the same without the list. A thread may hold it beside a Mutex, because who holds a LeafMutex
// waits for nothing: it locks no other, and makes no call that blocks. Its owner locks it around a fork
// (ForkListener).
//
// REQUIRES: the mutex outlives every call, also an unlock after which another thread may hold it.
namespace berth::internal::os {

class BERTH_CAPABILITY("mutex") LeafMutex {
 public:
  LeafMutex() noexcept = default;
  LeafMutex(const LeafMutex&) = delete;
  LeafMutex& operator=(const LeafMutex&) = delete;

  void lock() noexcept BERTH_ACQUIRE() {
    if (!try_lock()) [[unlikely]]
      lock_slowly();
  }

  void unlock() noexcept BERTH_RELEASE() {
    if (has_waiters_after_release()) [[unlikely]]
      wake();
  }

  bool try_lock() noexcept BERTH_TRY_ACQUIRE(true) {
    std::uint32_t expected = 0;
    // acquire: what the last holder wrote is visible from here on.
    return held_.compare_exchange_strong(expected, 1, std::memory_order_acquire, std::memory_order_relaxed);
  }

  void forget_waiters() noexcept;  // in a forked child, which does not have them

  // At load: from now on waiters fence all threads, if they can. Returns whether they can.
  static bool let_waiters_fence() noexcept;

 private:
  // Releases it, and then looks for waiters: in that order for the compiler, and for the processor by the fence
  // of the waiter. Where there is no such fence, all four accesses are sequentially consistent.
  bool has_waiters_after_release() noexcept {
    if (g_waiters_fence.load(std::memory_order_relaxed)) [[likely]] {
      held_.store(0, std::memory_order_release);  // release: pairs with the acquire of try_lock
      std::atomic_signal_fence(std::memory_order_seq_cst);
      return waiters_.load(std::memory_order_relaxed) != 0;
    }
    held_.store(0, std::memory_order_seq_cst);
    return waiters_.load(std::memory_order_seq_cst) != 0;
  }
  // For a thread that has announced that it waits.
  bool try_lock_announced() noexcept BERTH_NO_THREAD_ANALYSIS { return held_.load(std::memory_order_seq_cst) == 0 && try_lock(); }
  void lock_slowly() noexcept BERTH_NO_THREAD_ANALYSIS;
  void await_hand_over() noexcept BERTH_NO_THREAD_ANALYSIS;
  void wake() noexcept BERTH_NO_THREAD_ANALYSIS;

  static std::atomic<bool> g_waiters_fence;  // whether waiters fence all threads

  std::atomic<std::uint32_t> held_{0};     // 1: held. Waiters sleep on it
  std::atomic<std::uint32_t> waiters_{0};  // that sleep, or are about to
  std::atomic<std::uint32_t> woken_{0};    // not 0: one of them was woken, and does not run yet
  std::atomic<std::uint32_t> starved_{0};  // 1: one of them is handed the mutex by the next holder
  std::atomic<std::uint32_t> handed_{0};   // 1: it was. It sleeps on this
};

class Mutex : public LeafMutex {
 public:
  Mutex() noexcept;
  ~Mutex();

 private:
  friend class ForkRegistry;

  Mutex* previous_ = nullptr;  // the list of all mutexes, owned by ForkRegistry
  Mutex* next_ = nullptr;
};

class BERTH_SCOPED_CAPABILITY Lock {
 public:
  explicit Lock(LeafMutex& mutex) noexcept BERTH_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  // Counts in `waits` if it has to wait. Several threads may count at once, and one of them be lost.
  Lock(LeafMutex& mutex, Relaxed<std::uint32_t>& waits) noexcept BERTH_ACQUIRE(mutex) : mutex_(mutex) {
    if (mutex_.try_lock()) [[likely]]
      return;
    waits.store(waits.load() + 1);
    mutex_.lock();
  }
  ~Lock() BERTH_RELEASE() { mutex_.unlock(); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  LeafMutex& mutex_;
};

// The other way round: releases a mutex that is held, and acquires it again at the end of the scope.
class BERTH_SCOPED_CAPABILITY Unlock {
 public:
  explicit Unlock(Mutex& mutex) noexcept BERTH_RELEASE(mutex) : mutex_(mutex) { mutex_.unlock(); }
  ~Unlock() BERTH_RELEASE() { mutex_.lock(); }
  Unlock(const Unlock&) = delete;
  Unlock& operator=(const Unlock&) = delete;

 private:
  Mutex& mutex_;
};

// Runs `work` with the mutex released, and returns what it returns: `const Status done = unlocked(mutex_, [&] {
// return device.commit(...); });`
template <class Work>
auto unlocked(Mutex& mutex, const Work& work) BERTH_REQUIRES(mutex) {
  const Unlock released(mutex);
  return work();
}

// A condition variable for a Mutex. Used as: `while (!ready) changed.wait(mutex);`
class Condition {
 public:
  // Unlocks the mutex, sleeps until notified (spurious wakeups are possible), and locks it again.
  void wait(Mutex& mutex) noexcept BERTH_REQUIRES(mutex);
  void notify_all() noexcept;

 private:
  std::atomic<std::uint32_t> round_{0};
};

}  // namespace berth::internal::os
