// SPDX-License-Identifier: Apache-2.0
#include "os/mutex.h"

#include <pthread.h>

#include <cstdlib>

#include "os/fork.h"

namespace berth::os {

// The list of all mutexes, and what happens to them around a fork. A plain pthread mutex guards the list: it must work before and
// after everything else, and its constant initialisation needs no constructor.
class ForkRegistry {
 public:
  static void add(Mutex& mutex) noexcept {
    install_fork_handlers();
    pthread_mutex_lock(&guard);
    mutex.next_ = first;
    if (first != nullptr) first->previous_ = &mutex;
    first = &mutex;
    pthread_mutex_unlock(&guard);
  }

  static void remove(Mutex& mutex) noexcept {
    pthread_mutex_lock(&guard);
    (mutex.previous_ != nullptr ? mutex.previous_->next_ : first) = mutex.next_;
    if (mutex.next_ != nullptr) mutex.next_->previous_ = mutex.previous_;
    pthread_mutex_unlock(&guard);
  }

  // No thread holds two mutexes, so taking them one after another cannot deadlock: each holder lets go without needing another.
  static void before_fork() noexcept BERTH_NO_THREAD_ANALYSIS {
    pthread_mutex_lock(&guard);
    for (Mutex* m = first; m != nullptr; m = m->next_) m->lock();
  }

  static void after_fork_in_parent() noexcept BERTH_NO_THREAD_ANALYSIS {
    for (Mutex* m = first; m != nullptr; m = m->next_) m->unlock();
    pthread_mutex_unlock(&guard);
  }

  static void after_fork_in_child() noexcept {
    generation.fetch_add(1, std::memory_order_relaxed);
    after_fork_in_parent();
  }

  static inline std::atomic<std::uint64_t> generation{0};

 private:
  static inline pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
  static inline Mutex* first = nullptr;
};

void install_fork_handlers() noexcept {
  static const int installed =
      pthread_atfork(ForkRegistry::before_fork, ForkRegistry::after_fork_in_parent, ForkRegistry::after_fork_in_child);
  // Only a lack of memory for one small node, at start, can make this fail; going on would make fork unsafe in silence.
  if (installed != 0) std::abort();
}

std::uint64_t fork_generation() noexcept {
  install_fork_handlers();
  return ForkRegistry::generation.load(std::memory_order_relaxed);  // changes only while the process has one thread
}

Mutex::Mutex() noexcept { ForkRegistry::add(*this); }
Mutex::~Mutex() { ForkRegistry::remove(*this); }

void Mutex::lock_slowly() noexcept {
  // Critical sections are short: look a few times before sleeping.
  for (int i = 0; i < 64; ++i) {
    std::uint32_t expected = kFree;
    if (state_.compare_exchange_weak(expected, kHeld, std::memory_order_acquire, std::memory_order_relaxed)) return;
    if (expected == kContended) break;
  }
  // From here on the state says that someone sleeps, so that the holder wakes one.
  while (state_.exchange(kContended, std::memory_order_acquire) != kFree) state_.wait(kContended, std::memory_order_relaxed);
}

void Condition::wait(Mutex& mutex) noexcept {
  // Read before letting go: a notification in between changes the round, and the wait returns at once.
  const std::uint32_t seen = round_.load(std::memory_order_acquire);
  mutex.unlock();
  round_.wait(seen, std::memory_order_acquire);
  mutex.lock();
}

void Condition::notify_all() noexcept {
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
}

}  // namespace berth::os
