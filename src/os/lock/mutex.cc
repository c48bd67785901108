// SPDX-License-Identifier: Apache-2.0
#include "os/lock/mutex.h"

#include <time.h>

#include <algorithm>
#include <chrono>

#include "os/lock/futex.h"
#include "os/lock/gate.h"

namespace berth::internal::os {

constinit std::atomic<bool> LeafMutex::g_waiters_fence{false};  // until the library is loaded
[[maybe_unused]] const bool g_fence_known_at_load = LeafMutex::let_waiters_fence();
bool LeafMutex::let_waiters_fence() noexcept {
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

void LeafMutex::lock_slowly() noexcept {
  constexpr int kRounds = 24;      // some microseconds, less than it takes to sleep and be woken
  constexpr int kMostPauses = 16;  // in a round
  constexpr auto kPatience = std::chrono::milliseconds(1);
  for (int round = 0, pauses = 1; round < kRounds; ++round, pauses = std::min(2 * pauses, kMostPauses)) {
    for (int i = 0; i < pauses; ++i) pause();
    if (held_.load(std::memory_order_relaxed) == 0 && try_lock()) return;
  }
  waiters_.fetch_add(1, std::memory_order_seq_cst);
  const bool fenced = fence_all_threads();
  const auto since = std::chrono::steady_clock::now();
  while (!try_lock_announced()) {
    if (std::chrono::steady_clock::now() - since > kPatience && starved_.exchange(1, std::memory_order_seq_cst) == 0) {
      await_hand_over();
      break;
    }
    sleep_while(held_, 1, fenced);
    // Whoever unlocks next wakes another. Reads what the last unlock that found it set has written: if that one
    // woke nobody because of it, the mutex is seen to be free.
    woken_.exchange(0, std::memory_order_seq_cst);
  }
  waiters_.fetch_sub(1, std::memory_order_relaxed);
}

// REQUIRES: starved_ is this thread's.
void LeafMutex::await_hand_over() noexcept {
  const bool fenced = fence_all_threads();  // an unlock sees starved_, or try_lock sees that it is free
  while (!try_lock_announced()) {
    sleep_while(handed_, 0, fenced);
    // acquire: the holder that handed it over
    if (handed_.load(std::memory_order_acquire) != 0) break;
  }
  handed_.store(0, std::memory_order_relaxed);
  starved_.store(0, std::memory_order_release);  // release: the next starved thread sees that nothing is handed over
}

void LeafMutex::wake() noexcept {
  while (starved_.load(std::memory_order_seq_cst) != 0) {
    if (!try_lock()) return;  // another was faster, and its own unlock will do this
    // Held again, for the starved thread, unless that has had it meanwhile: only a holder clears the mark.
    if (starved_.load(std::memory_order_relaxed) != 0) {
      handed_.store(1, std::memory_order_release);
      futex_wake_one(handed_);
      return;
    }
    if (!has_waiters_after_release()) return;
  }
  // One waiter at a time is on its way back to the processor; until it is there, others may have the mutex. If
  // nobody slept yet, those who unlocked meanwhile and woke nobody rely on this thread.
  while (woken_.fetch_add(1, std::memory_order_seq_cst) == 0) {
    if (futex_wake_one(held_) || woken_.exchange(0, std::memory_order_seq_cst) <= 1) return;
  }
}

void LeafMutex::forget_waiters() noexcept {
  for (std::atomic<std::uint32_t>* const word : {&waiters_, &woken_, &starved_, &handed_}) word->store(0, std::memory_order_relaxed);
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
