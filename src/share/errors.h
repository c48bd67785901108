// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "berth/base/error.h"
#include "berth/base/result.h"

// Throws failures of sharing as the exceptions that they stand for, with advice. Any thread.
namespace berth::internal::share {

[[noreturn]] void throw_share_failure(const Failure& failure, std::string asked, std::vector<Fact> facts = {}, std::string help = {});

template <class T>
T value_or_throw(Result<T> result, const char* asked) {
  if (!result) throw_share_failure(result.failure(), asked);
  return std::move(*result);
}

}  // namespace berth::internal::share
