// SPDX-License-Identifier: Apache-2.0
#include "os/clock.h"

#include <atomic>
#include <ctime>

namespace berth::internal::os {

namespace {
std::atomic<CoarseClock> g_clock{nullptr};
}  // namespace

std::uint64_t coarse_time_ns() noexcept {
  // relaxed: a test sets it before it starts threads.
  if (const CoarseClock clock = g_clock.load(std::memory_order_relaxed)) return clock();
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

void set_coarse_clock(CoarseClock clock) noexcept { g_clock.store(clock, std::memory_order_relaxed); }

}  // namespace berth::internal::os
