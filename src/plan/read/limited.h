// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/allowance.h"
#include "berth/plan/read_limits.h"
#include "plan/deadline.h"

// Keeps the limits of a reader.
namespace berth::internal::plan::read {

// The most memory that reading these bytes may take.
std::size_t room_for(std::string_view bytes, const ReadLimits& limits) noexcept;

[[noreturn]] void refuse_room(std::string_view bytes, std::string_view name, const ReadLimits& limits);
[[noreturn]] void refuse_time(std::string_view name, const ReadLimits& limits, std::chrono::duration<double> whole);

// Returns read(), or refuses when it takes too much.
template <class Read>
auto limited(std::string_view bytes, std::string_view name, const ReadLimits& limits, Read read) {
  base::Allowance allowance({.until = end_of(limits.time, base::Allowance::Clock::now()), .room_bytes = room_for(bytes, limits)});
  try {
    base::take(bytes.size());
    return read();
  } catch (const base::OutOfRoom&) {
    refuse_room(bytes, name, limits);
  } catch (const base::OutOfTime&) {
    refuse_time(name, limits, allowance.whole());
  }
}

}  // namespace berth::internal::plan::read
