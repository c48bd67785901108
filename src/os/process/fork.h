// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

// What fork means for berth. `fork_generation()` is 0 in the first process and one more in each forked child, so that an object that
// remembers the generation it was made in can tell "mine" from "inherited" with one load. Processes made by vfork or a raw clone run
// no fork handlers: they must exec without touching berth. The handlers are installed when the library is loaded; fork handlers that were
// installed before must not use berth.
namespace berth::internal::os {

// Changed only by the fork handlers, which every Mutex has installed before it can matter.
inline std::atomic<std::uint64_t> g_fork_generation{0};

inline std::uint64_t fork_generation() noexcept {
  return g_fork_generation.load(std::memory_order_relaxed);  // changes only while the process has one thread
}

// Something that must be brought to rest around a fork beyond its mutexes. The functions run on the forking thread with every Mutex held,
// and must take none. Listening begins and ends by hand, when the whole object is there and while it still is: constructors and destructors
// of a base would be too early and too late, with another thread forking in between.
class ForkListener {
 public:
  ForkListener() noexcept = default;
  ForkListener(const ForkListener&) = delete;
  ForkListener& operator=(const ForkListener&) = delete;

  virtual void before_fork() noexcept = 0;
  virtual void after_fork(bool in_child) noexcept = 0;

 protected:
  ~ForkListener() = default;  // REQUIRES: it does not listen
  void listen() noexcept;
  void stop_listening() noexcept;

 private:
  friend class ForkRegistry;
  ForkListener* previous_ = nullptr;
  ForkListener* next_ = nullptr;
};

}  // namespace berth::internal::os
