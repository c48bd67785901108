// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "os/system.h"

// The processor's timestamp counter: the cheapest clock, synchronized across cores, at a rate that must be
// calibrated against a real clock. `ticks` may be reordered with nearby instructions; `ticks_in_order` waits
// for the earlier ones first. Any thread.
namespace berth::internal::os {

#if defined(__aarch64__)
inline std::uint64_t ticks() noexcept {
  std::uint64_t count;
  asm volatile("mrs %0, cntvct_el0" : "=r"(count));
  return count;
}
inline std::uint64_t ticks_in_order() noexcept {
  asm volatile("isb" ::: "memory");
  return ticks();
}
#elif defined(__x86_64__)
inline std::uint64_t ticks() noexcept { return __builtin_ia32_rdtsc(); }
inline std::uint64_t ticks_in_order() noexcept {
  asm volatile("lfence" ::: "memory");
  return ticks();
}
#else
inline std::uint64_t ticks() noexcept { return steady_time_ns(); }
inline std::uint64_t ticks_in_order() noexcept { return steady_time_ns(); }
#endif

}  // namespace berth::internal::os
