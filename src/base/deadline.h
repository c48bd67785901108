// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cmath>
#include <optional>

#include "base/namespace.h"

// The end of a time limit.
namespace berth::internal::base {

// A limit of a year or more is none.
inline bool is_limit(std::chrono::duration<double> limit) { return limit < std::chrono::hours(24 * 365); }

inline std::optional<std::chrono::steady_clock::time_point> end_of(std::chrono::duration<double> limit,
                                                                   std::chrono::steady_clock::time_point start) {
  if (!is_limit(limit)) return std::nullopt;
  return start + std::chrono::duration_cast<std::chrono::steady_clock::duration>(limit);
}

// What is left of it; never negative.
inline std::chrono::duration<double> left_of(std::chrono::duration<double> limit, std::chrono::steady_clock::time_point start) {
  if (!is_limit(limit)) return limit;
  const std::chrono::duration<double> left = limit - (std::chrono::steady_clock::now() - start);
  return left.count() < 0 ? std::chrono::duration<double>(0) : left;
}

// For messages: whole seconds, or hundredths.
inline std::chrono::milliseconds rounded_up(std::chrono::duration<double> time) {
  const double unit_s = time.count() >= 1 ? 1 : 0.01;
  return std::chrono::milliseconds(std::llround(std::ceil(time.count() / unit_s) * unit_s * 1000));
}

// A limit is kept within a fifth and 0.2 s. Where no plan is verified by this end, work stops: most of that is left to
// free what was built, and to say so.
inline std::optional<std::chrono::steady_clock::time_point> last_end_of(std::chrono::duration<double> limit,
                                                                        std::chrono::steady_clock::time_point start) {
  return is_limit(limit) ? end_of(limit * 1.05 + std::chrono::milliseconds(100), start) : std::nullopt;
}

}  // namespace berth::internal::base
