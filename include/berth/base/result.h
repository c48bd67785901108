// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <cstddef>
#include <utility>
#include <variant>

#include "berth/base/error.h"

// Expected failures as values. Inside berth, and between berth and a backend, "the device is full" or "not supported" is an
// answer and not an exception; the public face turns it into one. A `Failure` fits in two registers and copying it allocates
// nothing, so that success costs nothing and running out of memory can be reported without memory.
namespace berth {

struct Failure {
  ErrorCode code = ErrorCode::device_error;
  int os_error = 0;      // errno, or the device's own code; 0 when there is none
  const char* why = "";  // a literal
};

// A T, or why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Failure failure) : state_(std::in_place_index<1>, failure) {}

  bool ok() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return ok(); }

  // REQUIRES: ok()
  T& operator*() noexcept { return *std::get_if<0>(&state_); }
  const T& operator*() const noexcept { return *std::get_if<0>(&state_); }
  T* operator->() noexcept { return std::get_if<0>(&state_); }
  const T* operator->() const noexcept { return std::get_if<0>(&state_); }

  // REQUIRES: !ok()
  const Failure& failure() const noexcept { return *std::get_if<1>(&state_); }

 private:
  std::variant<T, Failure> state_;
};

// Done, or why not.
class [[nodiscard]] Status {
 public:
  constexpr Status() noexcept = default;
  constexpr Status(Failure failure) noexcept : failure_(failure) {}

  constexpr bool ok() const noexcept { return failure_.why == nullptr; }
  constexpr explicit operator bool() const noexcept { return ok(); }
  constexpr const Failure& failure() const noexcept { return failure_; }  // REQUIRES: !ok()

 private:
  Failure failure_{.why = nullptr};  // a failure always says why, if only with an empty text
};

}  // namespace berth
