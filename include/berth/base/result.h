// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <cstddef>
#include <utility>
#include <variant>

#include "berth/base/error.h"

// Expected failures as values. Inside berth, and between berth and a backend, "the device is full" or "not
// supported" is a return value and not an exception; the public API throws it. A `Failure` fits in two
// registers and copying it allocates nothing, so that the success path costs nothing and running out of memory
// can be reported without allocating.
namespace berth {

// Why an allocation was refused, for layers that must tell refusals apart: the layer that refused explains
// itself in the report.
enum class Refusal : unsigned char {
  other,           // the device, or a cause that no layer tests for
  limit,           // a limit adaptor
  strategy_limit,  // the limit among the options of a strategy
  private_limit,   // the limit of a private pool
  process_limit,
  addresses,  // no run of a pool's addresses is long enough
  arena_full,
  pending_work,  // streams may still use the memory
  not_moved,     // pages that are in use did not move
  injected,      // the fail adaptor
  rlimit,        // the system; a limit of the process may be the reason
};

struct Failure {
  ErrorCode code = ErrorCode::device_error;
  Refusal cause = Refusal::other;
  int os_error = 0;      // errno, or the device's own code; 0 when there is none
  const char* why = "";  // a string literal

  constexpr Failure() noexcept = default;
  constexpr Failure(ErrorCode failed, int error, const char* reason, Refusal refused_by = Refusal::other) noexcept
      : code(failed), cause(refused_by), os_error(error), why(reason) {}
};
static_assert(sizeof(Failure) == 16);

// A T, or the failure that explains why there is none.
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

// Success, or a failure.
class [[nodiscard]] Status {
 public:
  constexpr Status() noexcept = default;
  constexpr Status(Failure failure) noexcept : failure_(failure) {}

  constexpr bool ok() const noexcept { return failure_.why == nullptr; }
  constexpr explicit operator bool() const noexcept { return ok(); }
  constexpr const Failure& failure() const noexcept { return failure_; }  // REQUIRES: !ok()

 private:
  Failure failure_{ErrorCode::device_error, 0, nullptr};  // `why` is null on success only; it may be empty
};

}  // namespace berth
