// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <string_view>

#include "os/inject.h"

// One system call that fails: the one with that number, from when it is made on. What the kernel does not take back is there still, and there is
// nothing to be done about it: calls of those names are passed over.
namespace berth::testing {

class FailingCall {
 public:
  FailingCall(int number, int error, std::initializer_list<std::string_view> passed_over = {"munmap"}) {
    std::ranges::copy(passed_over, g_passed_over.begin());
    g_error = error;
    g_hit = false;
    g_countdown = number;
    os::set_injector(fail_once);
  }
  ~FailingCall() {
    os::set_injector(nullptr);
    g_countdown = -1;
    g_passed_over = {};
  }
  FailingCall(const FailingCall&) = delete;
  FailingCall& operator=(const FailingCall&) = delete;

  static bool was_hit() { return g_hit; }

 private:
  static int fail_once(std::string_view name) noexcept {
    if (std::ranges::find(g_passed_over, name) != g_passed_over.end()) return 0;
    if (g_countdown.load() < 0 || g_countdown.fetch_sub(1) != 0) return 0;
    g_hit = true;
    return g_error;
  }

  inline static std::array<std::string_view, 4> g_passed_over{};
  inline static std::atomic<int> g_countdown{-1};
  inline static std::atomic<int> g_error{0};
  inline static std::atomic<bool> g_hit{false};
};

}  // namespace berth::testing
