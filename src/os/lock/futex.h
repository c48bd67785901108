// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>

// Waiting in the kernel for another value of a word. No cancellation point, unlike the C library's waits.
namespace berth::internal::os {

// Returns when woken, when the word has another value, after the timeout if there is one, or for no reason.
inline void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t value, const timespec* timeout = nullptr) noexcept {
  (void)syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, timeout, nullptr, 0);
}
// Returns whether a thread slept there.
inline bool futex_wake_one(const std::atomic<std::uint32_t>& word) noexcept {
  return syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0) > 0;
}
inline void futex_wake_all(const std::atomic<std::uint32_t>& word) noexcept {
  (void)syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace berth::internal::os
