// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "os/inject.h"

// System calls that fail while an object lives.
namespace berth::testing {

namespace os = internal::os;

// Fails the calls that the injector selects.
class Injected {
 public:
  explicit Injected(os::Injector injector) noexcept { os::set_injector(injector); }
  ~Injected() { os::set_injector(nullptr); }
  Injected(const Injected&) = delete;
  Injected& operator=(const Injected&) = delete;
};

// Fails one call: the one with this number, counted from the construction of the object. Calls in `passed_over`
// never fail: memory that the kernel refuses to unmap stays mapped, and no code can do anything about it. With
// EINTR the calls that change mappings never fail either: no kernel answers that to them.
class FailingCall {
 public:
  FailingCall(int number, int error, std::initializer_list<std::string_view> passed_over = {"munmap"}) {
    std::ranges::copy(passed_over, g_passed_over.begin());
    g_error = error;
    g_hit = false;
    g_countdown = number;
    injected_.emplace(fail_once);
  }
  ~FailingCall() {
    injected_.reset();
    g_countdown = -1;
    g_passed_over = {};
  }

  static bool was_hit() { return g_hit; }

 private:
  static int fail_once(std::string_view name) noexcept {
    if (std::ranges::find(g_passed_over, name) != g_passed_over.end()) return 0;
    if (g_error == EINTR && std::ranges::find(kUninterrupted, name) != kUninterrupted.end()) return 0;
    if (g_countdown.load() < 0 || g_countdown.fetch_sub(1) != 0) return 0;
    g_hit = true;
    return g_error;
  }

  static constexpr std::array<std::string_view, 7> kUninterrupted = {"mmap",   "mmap_fixed", "munmap", "mprotect",
                                                                     "mremap", "madvise",    "mbind"};
  std::optional<Injected> injected_;
  inline static std::array<std::string_view, 4> g_passed_over{};
  inline static std::atomic<int> g_countdown{-1};
  inline static std::atomic<int> g_error{0};
  inline static std::atomic<bool> g_hit{false};
};

// Refuses every call of one name, after some that it lets through.
class RefusedCall {
 public:
  RefusedCall(const char* call, int error, int let_through = 0) : injected_((set(call, error, let_through), refuse)) {}

 private:
  static void set(const char* call, int error, int let_through) {
    g_call = call;
    g_error = error;
    g_let_through = let_through;
  }
  static int refuse(std::string_view name) noexcept { return name == g_call && g_let_through.fetch_sub(1) <= 0 ? g_error : 0; }

  const Injected injected_;
  inline static std::string_view g_call;
  inline static int g_error = 0;
  inline static std::atomic<int> g_let_through{0};
};

// An attempt while a call is refused.
inline std::function<void()> refused(const char* call, int error, const std::function<void()>& attempt) {
  return [=] {
    const RefusedCall no(call, error);
    attempt();
  };
}

}  // namespace berth::testing
