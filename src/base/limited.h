// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/allowance.h"
#include "base/deadline.h"
#include "base/namespace.h"
#include "berth/base/read_limits.h"
#include "berth/export.h"

// Keeps the limits of a reader.
namespace berth::internal::base {

// The most memory that reading so many bytes may take.
BERTH_EXPORT std::size_t room_for(std::size_t bytes, const ReadLimits& limits) noexcept;

[[noreturn]] BERTH_EXPORT void refuse_room(std::size_t bytes, std::string_view name, const ReadLimits& limits);
[[noreturn]] BERTH_EXPORT void refuse_time(std::string_view name, const ReadLimits& limits, std::chrono::duration<double> whole);

// Returns read(), or refuses when it takes too much. `bytes` are there before: those that it reads, or those that were
// made of them.
template <class Read>
auto limited(std::size_t bytes, std::string_view name, const ReadLimits& limits, Read read) {
  Allowance allowance({.until = end_of(limits.time, Allowance::Clock::now()), .room_bytes = room_for(bytes, limits)});
  try {
    take(bytes);
    return read();
  } catch (const OutOfRoom&) {
    refuse_room(bytes, name, limits);
  } catch (const OutOfTime&) {
    refuse_time(name, limits, allowance.whole());
  }
}

}  // namespace berth::internal::base
