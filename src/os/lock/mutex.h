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
// - Locking without contention is one compare-and-swap, unlocking one store: less than half the cost of the C library's. The price is
//   that nobody is woken: who finds it taken looks again, at growing intervals of up to a millisecond. Sections under a Mutex are
//   tens of nanoseconds long (but for the simulated device, which copies under its own), so only a holder that the kernel has put
//   aside is ever waited for longer. What takes longer waits on a Condition, which does wake. Who has looked in vain for about a
//   millisecond, because others take turns too quickly to be seen, has the next turn: newcomers stand back.
namespace berth::internal::os {

class BERTH_CAPABILITY("mutex") Mutex {
 public:
  Mutex() noexcept;
  ~Mutex();
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() noexcept BERTH_ACQUIRE() {
    bool expected = false;
    // acquire: what the last holder wrote is visible from here on.
    if (promised_.load(std::memory_order_relaxed) ||
        !held_.compare_exchange_strong(expected, true, std::memory_order_acquire, std::memory_order_relaxed)) [[unlikely]]
      lock_slowly();
  }

  void unlock() noexcept BERTH_RELEASE() {
    held_.store(false, std::memory_order_release);  // what this holder wrote is visible to the next
  }

 private:
  friend class ForkRegistry;

  void lock_slowly() noexcept;

  std::atomic<bool> held_{false};
  std::atomic<bool> promised_{false};  // one that waited for long has the next turn. A hint: it says who waits, not who may enter
  Mutex* previous_ = nullptr;          // the list of all mutexes, owned by ForkRegistry
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

}  // namespace berth::internal::os
