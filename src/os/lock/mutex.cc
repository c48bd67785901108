// SPDX-License-Identifier: Apache-2.0
#include "os/lock/mutex.h"

#include <time.h>

#include "os/lock/futex.h"
#include "os/lock/gate.h"

namespace berth::internal::os {

constinit std::atomic<bool> Mutex::g_waiters_fence{false};  // until the library is loaded
[[maybe_unused]] const bool g_fence_known_at_load = Mutex::let_waiters_fence();
bool Mutex::let_waiters_fence() noexcept {
  const bool has = has_fence_for_all_threads();
  g_waiters_fence.store(has, std::memory_order_relaxed);
  return has;
}

namespace {

// A waiter that could not fence may be overlooked by an unlock, and looks again by itself.
void sleep_while(const std::atomic<std::uint32_t>& word, std::uint32_t value, bool fenced) noexcept {
  const timespec a_while{0, 1'000'000};
  futex_wait(word, value, fenced ? nullptr : &a_while);
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
  if (starved_.load(std::memory_order_seq_cst) == 0) return futex_wake_one(held_);
  // Held again, for the starved thread. If another was faster, its own unlock will do this.
  if (!try_lock()) return;
  handed_.store(1, std::memory_order_release);
  futex_wake_one(handed_);
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
