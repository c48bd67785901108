// SPDX-License-Identifier: Apache-2.0
#include "os/lock/mutex.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>

#include "os/process/fork.h"

namespace berth::internal::os {

// The lists of all mutexes and listeners, and the fork handlers that act on them. A plain pthread mutex guards
// the lists: it must work before and after everything else, and is constant-initialized.
class ForkRegistry {
 public:
  static void add(Mutex& mutex) noexcept { link(mutex, first); }
  static void add(ForkListener& listener) noexcept { link(listener, first_listener); }
  static void remove(Mutex& mutex) noexcept { unlink(mutex, first); }
  static void remove(ForkListener& listener) noexcept { unlink(listener, first_listener); }

  // No thread holds two mutexes, so locking them one after another cannot deadlock: each holder unlocks without
  // needing another.
  static void before_fork() noexcept BERTH_NO_THREAD_ANALYSIS {
    pthread_mutex_lock(&guard);
    for (Mutex* m = first; m != nullptr; m = m->next_) m->lock();
    for (ForkListener* l = first_listener; l != nullptr; l = l->next_) l->before_fork();
  }

  static void after_fork_in_parent() noexcept { unlock_all(false); }

  static void after_fork_in_child() noexcept {
    g_fork_generation.fetch_add(1, std::memory_order_relaxed);
    unlock_all(true);
  }

  static void install_handlers() noexcept {
    static const int failed = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    // This fails only when there is no memory for one small node at startup; continuing would make fork
    // silently unsafe.
    if (failed != 0) std::abort();
  }

 private:
  template <class Node>
  static void link(Node& node, Node*& head) noexcept {
    install_handlers();
    pthread_mutex_lock(&guard);
    node.next_ = head;
    if (head != nullptr) head->previous_ = &node;
    head = &node;
    pthread_mutex_unlock(&guard);
  }

  template <class Node>
  static void unlink(Node& node, Node*& head) noexcept {
    pthread_mutex_lock(&guard);
    (node.previous_ != nullptr ? node.previous_->next_ : head) = node.next_;
    if (node.next_ != nullptr) node.next_->previous_ = node.previous_;
    pthread_mutex_unlock(&guard);
  }

  static void unlock_all(bool in_child) noexcept BERTH_NO_THREAD_ANALYSIS {
    for (ForkListener* l = first_listener; l != nullptr; l = l->next_) l->after_fork(in_child);
    for (Mutex* m = first; m != nullptr; m = m->next_) {
      if (in_child) m->promised_.store(false, std::memory_order_relaxed);  // its thread is not in the child
      m->unlock();
    }
    pthread_mutex_unlock(&guard);
  }

  static inline pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
  static inline Mutex* first = nullptr;
  static inline ForkListener* first_listener = nullptr;
};

// Installed when the library is loaded: handlers run in the order of installation, and later ones may use
// berth.
[[gnu::constructor]] void install_fork_handlers_at_load() { ForkRegistry::install_handlers(); }

Mutex::Mutex() noexcept { ForkRegistry::add(*this); }
Mutex::~Mutex() { ForkRegistry::remove(*this); }

void ForkListener::listen() noexcept { ForkRegistry::add(*this); }
void ForkListener::stop_listening() noexcept { ForkRegistry::remove(*this); }

void Mutex::lock_slowly() noexcept {
  constexpr int kSpins = 100;
  constexpr int kYields = 20;
  constexpr int kNaps = 10;  // of 20 microseconds and more, before claiming the next turn
  bool is_next = false;
  for (int attempt = 0;; ++attempt) {
    bool expected = false;
    if ((is_next || !promised_.load(std::memory_order_relaxed)) && !held_.load(std::memory_order_relaxed) &&
        held_.compare_exchange_weak(expected, true, std::memory_order_acquire, std::memory_order_relaxed)) {
      if (is_next) promised_.store(false, std::memory_order_relaxed);
      return;
    }
    if (attempt < kSpins) continue;
    if (attempt < kSpins + kYields) {
      sched_yield();
      continue;
    }
    const int naps = attempt - kSpins - kYields;
    if (naps >= kNaps && !is_next) is_next = !promised_.exchange(true, std::memory_order_relaxed);
    const long microseconds = is_next ? 20 : std::min(20L * (naps + 1), 1000L);
    const timespec pause{0, 1000 * microseconds};
    nanosleep(&pause, nullptr);
  }
}

void Condition::wait(Mutex& mutex) noexcept {
  // Read before unlocking: a notification in between changes the round, and the wait returns at once.
  const std::uint32_t seen = round_.load(std::memory_order_acquire);
  mutex.unlock();
  round_.wait(seen, std::memory_order_acquire);
  mutex.lock();
}

void Condition::notify_all() noexcept {
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
}

}  // namespace berth::internal::os
