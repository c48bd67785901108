// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "base/annotations.h"

// berth's mutex. It differs from std::mutex in two ways:
//
// - It survives fork. Every live Mutex is on a list; before a fork all of them are locked, and parent and child
//   unlock them afterwards, so a child never inherits a lock held by a thread it does not have. This needs the
//   house rule: a thread holds at most one Mutex, and creates or destroys none while holding one.
// - An uncontended lock is one compare-and-swap, an unlock one store: less than half the cost of the C
//   library's. The price is that waiters are not woken: they spin, yield, and then poll at growing intervals of
//   up to a millisecond. Critical sections are tens of nanoseconds long (but for the simulated device, which
//   copies under its own mutex), so only a preempted holder makes waiters wait longer. Longer waits use a
//   Condition, which does wake. A waiter that has failed for about a millisecond, because others acquire the
//   mutex in quick succession, gets the next turn: newcomers stand back.
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
    held_.store(false, std::memory_order_release);  // release: pairs with the acquire above
  }

 private:
  friend class ForkRegistry;

  void lock_slowly() noexcept;

  std::atomic<bool> held_{false};
  std::atomic<bool> promised_{false};  // a starved waiter is next. A hint: only held_ excludes
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

// Runs `work` with the mutex released, and returns what it returns: `const Status done = unlocked(mutex_, [&] { return device.commit(...); });`
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
