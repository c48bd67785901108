// SPDX-License-Identifier: Apache-2.0
#include "os/process/fork.h"

#include <pthread.h>
#include <time.h>

#include <cstdlib>

#include "os/lock/futex.h"
#include "os/lock/mutex.h"
#include "os/system.h"

namespace berth::internal::os {

namespace {

// Sequentially consistent, all of them: a thread that begins is counted before it looks for forks, and a fork
// is counted before it looks for threads, so that one of them sees the other.
constinit std::atomic<std::uint32_t> g_forks{0};                                     // under way
constinit std::atomic<std::uint32_t> g_busy{0};                                      // threads that a fork waits for
constinit thread_local std::uint32_t t_busy [[gnu::tls_model("initial-exec")]] = 0;  // the NoForks of this thread

// How long a fork waits: a call to a device that hangs must not hang it. The child loses what is under way
// then.
constexpr std::uint64_t kMostWaitNs = 1'000'000'000;

// Waits until no other thread is busy, or for too long. Returns false then.
bool await_others(std::uint64_t until_ns) noexcept {
  for (std::uint32_t busy = g_busy.load(); busy != 0; busy = g_busy.load()) {
    const std::uint64_t now = steady_time_ns();
    if (now >= until_ns) return false;
    const timespec rest{static_cast<time_t>((until_ns - now) / 1'000'000'000), static_cast<long>((until_ns - now) % 1'000'000'000)};
    futex_wait(g_busy, busy, &rest);
  }
  return true;
}

}  // namespace

// ---- work that a fork waits for

NoFork::NoFork(Needed needed, Wait wait) noexcept : needed_(needed) {
  if (needed == Needed::no || begin() || wait == Wait::no) return;
  await_fork();
  (void)begin();
}

NoFork::NoFork(Needed needed, Mutex& released) noexcept BERTH_NO_THREAD_ANALYSIS : needed_(needed) {
  if (needed == Needed::no || begin()) return;
  unlocked(released, [] { await_fork(); });
  (void)begin();
}

NoFork::~NoFork() {
  if (needed_ == Needed::no || --t_busy > 0) return;
  if (g_busy.fetch_sub(1) == 1 && g_forks.load() != 0) futex_wake_all(g_busy);
}

// False: it has begun, and a fork waits for it.
bool NoFork::begin() noexcept {
  if (t_busy++ > 0) return true;
  g_busy.fetch_add(1);
  return g_forks.load() == 0;
}

// Ends what has begun, and waits until a fork is over, or another begins: not for ever, where several threads
// do nothing but fork.
void NoFork::await_fork() noexcept {
  t_busy = 0;
  if (g_busy.fetch_sub(1) == 1) futex_wake_all(g_busy);
  const std::uint32_t forks = g_forks.load();
  while (forks != 0 && g_forks.load() == forks) futex_wait(g_forks, forks);
}

// ---- the fork handlers

// The lists of all mutexes and listeners, and the fork handlers that act on them. A plain pthread mutex guards
// the lists: it must work before and after everything else, and is constant-initialized.
class ForkRegistry {
 public:
  static void add(Mutex& mutex) noexcept { link(mutex, first); }
  static void add(ForkListener& listener) noexcept { link(listener, first_listener); }
  static void remove(Mutex& mutex) noexcept { unlink(mutex, first); }
  static void remove(ForkListener& listener) noexcept { unlink(listener, first_listener); }

  // No thread holds two mutexes, so locking them one after another cannot deadlock: each holder unlocks without
  // needing another. With all of them locked no thread becomes busy.
  static void before_fork() noexcept BERTH_NO_THREAD_ANALYSIS {
    g_forks.fetch_add(1);
    for (const std::uint64_t until_ns = steady_time_ns() + kMostWaitNs;;) {
      const bool waits = t_busy == 0 && await_others(until_ns);
      pthread_mutex_lock(&guard);
      for (Mutex* m = first; m != nullptr; m = m->next_) m->lock();
      if (!waits || g_busy.load() == 0) break;
      for (Mutex* m = first; m != nullptr; m = m->next_) m->unlock();
      pthread_mutex_unlock(&guard);
    }
    for (ForkListener* l = first_listener; l != nullptr; l = l->next_) l->before_fork();
  }

  static void after_fork_in_parent() noexcept {
    unlock_all(false);
    g_forks.fetch_sub(1);
    futex_wake_all(g_forks);
  }

  // Of all threads that were counted, the child has at most this one.
  static void after_fork_in_child() noexcept {
    g_fork_generation.fetch_add(1, std::memory_order_relaxed);
    g_busy.store(t_busy == 0 ? 0 : 1);
    g_forks.store(0);
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

Mutex::Mutex() noexcept { ForkRegistry::add(*this); }
Mutex::~Mutex() { ForkRegistry::remove(*this); }

void ForkListener::listen() noexcept { ForkRegistry::add(*this); }
void ForkListener::stop_listening() noexcept { ForkRegistry::remove(*this); }

}  // namespace berth::internal::os
