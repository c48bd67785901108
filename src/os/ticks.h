// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "os/system.h"

// The processor's own counter: the cheapest clock there is, the same on every core, of a rate that is to be found out by reading a real
// clock twice. It may be read a few instructions before or after its place; `ticks_in_order` waits for what stands before it.
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
