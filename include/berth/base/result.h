// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <cstddef>
#include <new>
#include <string_view>
#include <utility>
#include <variant>

#include "berth/base/error.h"

// Expected failures as values. Inside berth, and between berth and a backend, "the device is full" or "not supported" is an
// answer and not an exception; the public face turns it into one. A `Failure` is small and copying it allocates nothing, so
// that running out of memory can be reported without memory.
namespace berth {

struct Failure {
  ErrorCode code = ErrorCode::device_error;
  int os_error = 0;          // errno, or the device's own code; 0 when there is none
  std::string_view why = {};  // a literal

  friend bool operator==(const Failure&, const Failure&) = default;
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
  Status() = default;
  Status(Failure failure) : failed_(true), failure_(failure) {}

  bool ok() const noexcept { return !failed_; }
  explicit operator bool() const noexcept { return ok(); }
  const Failure& failure() const noexcept { return failure_; }  // REQUIRES: !ok()

 private:
  bool failed_ = false;
  Failure failure_;
};

}  // namespace berth
