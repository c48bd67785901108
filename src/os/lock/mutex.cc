// SPDX-License-Identifier: Apache-2.0
#include "os/lock/mutex.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>

#include "os/lock/gate.h"
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
      if (in_child) m->forget_waiters();
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

constinit std::atomic<bool> Mutex::g_waiters_fence{false};  // until the library is loaded
[[maybe_unused]] const bool g_fence_known_at_load = Mutex::let_waiters_fence();
bool Mutex::let_waiters_fence() noexcept {
  const bool has = has_fence_for_all_threads();
  g_waiters_fence.store(has, std::memory_order_relaxed);
  return has;
}

Mutex::Mutex() noexcept { ForkRegistry::add(*this); }
Mutex::~Mutex() { ForkRegistry::remove(*this); }

void ForkListener::listen() noexcept { ForkRegistry::add(*this); }
void ForkListener::stop_listening() noexcept { ForkRegistry::remove(*this); }

namespace {

// Not a cancellation point, unlike the C library's waits. Returns when woken, when the word has another value,
// or for no reason. A waiter that could not fence may be overlooked by an unlock, and looks again by itself.
void sleep_while(const std::atomic<std::uint32_t>& word, std::uint32_t value, bool fenced) noexcept {
  const timespec a_while{0, 1'000'000};
  (void)syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, fenced ? nullptr : &a_while, nullptr, 0);
}
void wake_one(const std::atomic<std::uint32_t>& word) noexcept {
  (void)syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

void pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");  // as long as a pause; yield does nothing on most processors
#endif
}

}  // namespace

void Mutex::lock_slowly() noexcept {
  constexpr int kSpins = 40;    // about a microsecond, the length of a long critical section
  constexpr int kPatience = 4;  // times that it is woken for nothing
  for (int i = 0; i < kSpins; ++i) {
    pause();
    if (held_.load(std::memory_order_relaxed) == 0 && try_lock()) return;
  }
  waiters_.fetch_add(1, std::memory_order_seq_cst);
  const bool fenced = fence_all_threads();
  for (int woken = 0; !try_lock_announced(); ++woken) {
    if (woken >= kPatience && starved_.exchange(1, std::memory_order_seq_cst) == 0) {
      await_hand_over();
      break;
    }
    sleep_while(held_, 1, fenced);
  }
  waiters_.fetch_sub(1, std::memory_order_relaxed);
}

// REQUIRES: starved_ is this thread's.
void Mutex::await_hand_over() noexcept {
  const bool fenced = fence_all_threads();  // an unlock sees starved_, or try_lock sees that it is free
  while (!try_lock_announced()) {
    sleep_while(handed_, 0, fenced);
    // acquire: the holder that handed it over
    if (handed_.load(std::memory_order_acquire) != 0) break;
  }
  handed_.store(0, std::memory_order_relaxed);
  starved_.store(0, std::memory_order_relaxed);
}

void Mutex::wake() noexcept {
  if (starved_.load(std::memory_order_seq_cst) == 0) return wake_one(held_);
  // Held again, for the starved thread. If another was faster, its own unlock will do this.
  if (!try_lock()) return;
  handed_.store(1, std::memory_order_release);
  wake_one(handed_);
}

void Mutex::forget_waiters() noexcept {
  for (std::atomic<std::uint32_t>* const word : {&waiters_, &starved_, &handed_}) word->store(0, std::memory_order_relaxed);
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
