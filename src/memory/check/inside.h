// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

// The checked allocators that this thread is inside, innermost first. A call that finds its own allocator there
// comes from a signal handler that interrupted it: to proceed would acquire a lock that this thread holds.
// Thread-local.
//
// An allocator that runs user code on purpose (a handler, a callback) steps outside for that time.
namespace berth::internal::memory {

class Inside;
inline constinit thread_local const Inside* t_innermost [[gnu::tls_model("initial-exec")]] = nullptr;

class Inside {
 public:
  explicit Inside(const void* allocator) noexcept : allocator_(allocator), outer_(t_innermost) { set(this); }
  ~Inside() { set(outer_); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

  static bool is(const void* allocator) noexcept {
    for (const Inside* at = t_innermost; at != nullptr; at = at->outer_) {
      if (at->allocator_ == allocator) return true;
    }
    return false;
  }

 private:
  friend class Outside;
  // The fences keep the compiler from moving code out of the guarded scope: a signal handler of this thread
  // would see the difference.
  static void set(const Inside* innermost) noexcept {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    t_innermost = innermost;
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }

  const void* const allocator_;
  const Inside* const outer_;
};

class Outside {
 public:
  Outside() noexcept : before_(t_innermost) { Inside::set(nullptr); }
  ~Outside() { Inside::set(before_); }
  Outside(const Outside&) = delete;
  Outside& operator=(const Outside&) = delete;

 private:
  const Inside* const before_;
};

}  // namespace berth::internal::memory
