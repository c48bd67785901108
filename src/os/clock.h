// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// The clock for what happens every few seconds at most. It moves on every few milliseconds, never goes back, and costs a few loads.
namespace berth::internal::os {

std::uint64_t coarse_time_ns() noexcept;

// Puts another clock in its place, or brings it back with nullptr. For tests.
using CoarseClock = std::uint64_t (*)() noexcept;
void set_coarse_clock(CoarseClock clock) noexcept;

}  // namespace berth::internal::os
