// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "base/annotations.h"

// The lock of berth. It differs from std::mutex in two ways that matter here:
//
// - It survives fork. Every live Mutex is on a list; before a fork all of them are taken, and both sides let go afterwards, so a
//   child never inherits a lock held by a thread it does not have. This needs the house rule: a thread holds at most one Mutex,
//   and creates or destroys none while holding one.
// - Locking without contention is one compare-and-swap, unlocking one exchange: half the cost of the C library's.
//
// Waiters sleep in the kernel (a futex, through std::atomic::wait).
namespace berth::os {

class BERTH_CAPABILITY("mutex") Mutex {
 public:
  Mutex() noexcept;
  ~Mutex();
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() noexcept BERTH_ACQUIRE() {
    std::uint32_t expected = kFree;
    // acquire: what the last holder wrote is visible from here on.
    if (!state_.compare_exchange_strong(expected, kHeld, std::memory_order_acquire, std::memory_order_relaxed)) lock_slowly();
  }

  void unlock() noexcept BERTH_RELEASE() {
    // release: what this holder wrote is visible to the next.
    if (state_.exchange(kFree, std::memory_order_release) == kContended) state_.notify_one();
  }

 private:
  friend class ForkRegistry;
  enum : std::uint32_t { kFree = 0, kHeld = 1, kContended = 2 };

  void lock_slowly() noexcept;

  std::atomic<std::uint32_t> state_{kFree};
  Mutex* previous_ = nullptr;  // the list of all mutexes, owned by ForkRegistry
  Mutex* next_ = nullptr;
};

class BERTH_SCOPED_CAPABILITY Lock {
 public:
  explicit Lock(Mutex& mutex) noexcept BERTH_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~Lock() BERTH_RELEASE() { mutex_.unlock(); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  Mutex& mutex_;
};

// Waiting for a condition under a Mutex. Used as: `while (!ready) changed.wait(mutex);`
class Condition {
 public:
  // Lets go of the mutex, sleeps until notified (or, rarely, for no reason), and takes it again.
  void wait(Mutex& mutex) noexcept BERTH_REQUIRES(mutex);
  void notify_all() noexcept;

 private:
  std::atomic<std::uint32_t> round_{0};
};

}  // namespace berth::os
