// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

// Waits for a descriptor with a deadline, for sockets and child processes. Any thread.
namespace berth::internal::os {

constexpr std::uint64_t kNoWait = 0;  // a deadline in the past
// The time of the steady clock after that long, in nanoseconds. A negative patience counts as none.
std::uint64_t deadline_after(std::chrono::milliseconds patience) noexcept;

// Polls until the descriptor has one of `events` (POLLIN, POLLOUT), an error or a hang-up. A signal does not
// end the wait, and a deadline in the past polls once. False, with errno set: poll failed, or the deadline has
// passed (ETIMEDOUT).
bool wait_ready(int descriptor, short events, std::uint64_t deadline_ns) noexcept;

}  // namespace berth::internal::os
