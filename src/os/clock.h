// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// The coarse monotonic clock, for what happens every few seconds at most. It advances every few milliseconds
// and costs a few loads. Any thread.
namespace berth::internal::os {

std::uint64_t coarse_time_ns() noexcept;

// Replaces the clock, or restores it with nullptr. For tests.
using CoarseClock = std::uint64_t (*)() noexcept;
void set_coarse_clock(CoarseClock clock) noexcept;

}  // namespace berth::internal::os
