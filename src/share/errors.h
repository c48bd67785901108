// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "berth/base/error.h"
#include "berth/base/result.h"

// Throws failures of sharing as the exceptions that they stand for, with advice. Any thread.
namespace berth::internal::share {

// What would help with a failure of that code.
struct Advice {
  ErrorCode code;
  const char* help;
};
const char* advice_for(ErrorCode code, std::span<const Advice> table, const char* otherwise = "") noexcept;

// `help`: advice that fits what was asked better than the general one; empty: the general one.
[[noreturn]] void throw_share_failure(const Failure& failure, std::string asked, std::vector<Fact> facts = {}, std::string help = {});

template <class T>
T value_or_throw(Result<T> result, const char* asked, std::span<const Advice> first = {}) {
  if (!result) throw_share_failure(result.failure(), asked, {}, advice_for(result.failure().code, first));
  return std::move(*result);
}

}  // namespace berth::internal::share
