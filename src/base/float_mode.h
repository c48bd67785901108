// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/namespace.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

// RAII floating-point mode: during its lifetime the calling thread rounds to nearest, keeps subnormals, and
// does not trap, whatever the program has set, so that conversions give the same results on every thread.
// (Programs flush subnormals for speed, and a single library built with -ffast-math does so for the whole
// process.) Costs one register read when the mode is the default already.
namespace berth::internal::base {

class FloatMode {
 public:
  FloatMode() noexcept : before_(read()) {
    if (before_ != kDefault) [[unlikely]]
      write(kDefault);
  }
  ~FloatMode() {
    if (before_ != kDefault) [[unlikely]]
      write(before_);
  }
  FloatMode(const FloatMode&) = delete;
  FloatMode& operator=(const FloatMode&) = delete;

 private:
#if defined(__x86_64__)
  static constexpr std::uint64_t kDefault = 0x1f80;  // all exceptions masked
  static constexpr std::uint64_t kFlags = 0x3f;      // sticky exception flags, not part of the mode
  static std::uint64_t read() noexcept { return _mm_getcsr() & ~kFlags; }
  static void write(std::uint64_t mode) noexcept { _mm_setcsr(static_cast<unsigned>(mode)); }
#elif defined(__aarch64__)
  static constexpr std::uint64_t kDefault = 0;
  static std::uint64_t read() noexcept {
    std::uint64_t mode;
    asm volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
  }
  static void write(std::uint64_t mode) noexcept { asm volatile("msr fpcr, %0" : : "r"(mode)); }
#else
  static constexpr std::uint64_t kDefault = 0;
  static std::uint64_t read() noexcept { return kDefault; }
  static void write(std::uint64_t) noexcept {}
#endif

  const std::uint64_t before_;
};

}  // namespace berth::internal::base
