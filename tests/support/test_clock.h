// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "os/clock.h"

// A clock that a test advances, for all code that reads the coarse clock. One instance at a time.
namespace berth::testing {

namespace os = internal::os;

class TestClock {
 public:
  TestClock() {
    now_ns().store(1'000'000'000);
    os::set_coarse_clock([]() noexcept { return now_ns().load(); });
  }
  ~TestClock() { os::set_coarse_clock(nullptr); }
  TestClock(const TestClock&) = delete;
  TestClock& operator=(const TestClock&) = delete;

  void advance(std::chrono::milliseconds time) { now_ns() += static_cast<std::uint64_t>(time.count()) * 1'000'000; }

 private:
  static std::atomic<std::uint64_t>& now_ns() noexcept {
    static std::atomic<std::uint64_t> now{0};
    return now;
  }
};

}  // namespace berth::testing
