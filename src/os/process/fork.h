// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

// Fork handling. `fork_generation()` is 0 in the first process and one more in each forked child, so that an
// object with an `Origin` can tell "mine" from "inherited" with one load. vfork and a raw clone run no fork
// handlers: such a process must exec without touching berth. The handlers are installed when the library is
// loaded; fork handlers that were installed earlier must not use berth.
namespace berth::internal::os {

class Mutex;

// Changed only by the fork handlers, which the first Mutex installs at the latest.
inline std::atomic<std::uint64_t> g_fork_generation{0};

inline std::uint64_t fork_generation() noexcept {
  // relaxed: it changes only while the process has a single thread.
  return g_fork_generation.load(std::memory_order_relaxed);
}

// The process that made an object: a member, set where the object is made. In a forked child, copies of its
// parent's objects are inherited; the threads, locks and device handles behind them stayed in the parent.
class Origin {
 public:
  Origin() noexcept : generation_(fork_generation()) {}  // this process

  bool is_inherited() const noexcept { return generation_ != fork_generation(); }

 private:
  std::uint64_t generation_;
};

// An object that must be quiesced around a fork beyond its mutexes. The callbacks run on the forking thread
// with every Mutex held, and must lock none. Derived classes call listen() once they are fully constructed and
// stop_listening() before they are destroyed: the base's constructor and destructor would be too early and too
// late, with another thread forking in between.
class ForkListener {
 public:
  ForkListener() noexcept = default;
  ForkListener(const ForkListener&) = delete;
  ForkListener& operator=(const ForkListener&) = delete;

  virtual void before_fork() noexcept = 0;
  virtual void after_fork(bool in_child) noexcept = 0;

 protected:
  ~ForkListener() = default;  // REQUIRES: not listening
  void listen() noexcept;
  void stop_listening() noexcept;

 private:
  friend class ForkRegistry;
  ForkListener* previous_ = nullptr;
  ForkListener* next_ = nullptr;
};

// While one lives, other threads' forks wait: for work in several steps, with the mutex released in between, of
// which a child must not inherit half. Everything that it needs must be able to go on without the thread that
// forks, so it must not wait for streams or for user code; a fork waits for a second at most. A fork by the
// thread itself does not wait.
class NoFork {
 public:
  // A constructor that waits lets a fork that is under way go first, so that a fork need not wait for long in a
  // busy program; one that is given the calling thread's mutex releases it meanwhile.
  enum class Needed : bool { no, yes };  // no: it does nothing
  enum class Wait : bool { no, yes };
  NoFork(Needed needed, Wait wait) noexcept;
  NoFork(Needed needed, Mutex& released) noexcept;
  ~NoFork();
  NoFork(const NoFork&) = delete;
  NoFork& operator=(const NoFork&) = delete;

 private:
  static bool begin() noexcept;
  static void await_fork() noexcept;

  const Needed needed_;
};

}  // namespace berth::internal::os
