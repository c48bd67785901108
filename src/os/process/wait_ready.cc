// SPDX-License-Identifier: Apache-2.0
#include "os/process/wait_ready.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>

#include "os/inject.h"
#include "os/process/no_cancel.h"
#include "os/system.h"

namespace berth::internal::os {

namespace {

// What poll is called with: the time left, rounded up, and at most what fits its argument. The caller loops.
int timeout_ms(std::uint64_t deadline_ns) noexcept {
  constexpr std::uint64_t kMost = 1'000'000;
  const std::uint64_t now = steady_time_ns();
  const std::uint64_t left_ms = deadline_ns > now ? (deadline_ns - now + 999'999) / 1'000'000 : 0;
  return static_cast<int>(std::min(left_ms, kMost));
}

}  // namespace

std::uint64_t deadline_after(std::chrono::milliseconds patience) noexcept {
  // Clamped, so that no patience overflows.
  const auto ms = static_cast<std::uint64_t>(std::clamp<std::int64_t>(patience.count(), 0, std::int64_t{1} << 40));
  return steady_time_ns() + ms * 1'000'000;
}

bool wait_ready(int descriptor, short events, std::uint64_t deadline_ns) noexcept {
  const NoCancel whole;
  for (;;) {
    pollfd one{descriptor, events, 0};
    const int found = must_fail("poll") ? -1 : poll(&one, 1, timeout_ms(deadline_ns));
    if (found > 0) return true;
    if (found < 0 && errno != EINTR) return false;
    if (steady_time_ns() < deadline_ns) continue;
    errno = ETIMEDOUT;
    return false;
  }
}

}  // namespace berth::internal::os
