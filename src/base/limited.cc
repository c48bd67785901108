// SPDX-License-Identifier: Apache-2.0
#include "base/limited.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "berth/base/checked.h"
#include "berth/base/error.h"
#include "berth/base/units.h"

namespace berth::internal::base {

namespace {

// Of files that people have, a graph takes up to 30 times its text; small files may hold more.
constexpr std::size_t kTimes = 40;
constexpr std::size_t kLeast = 256_MiB;

}  // namespace

std::size_t room_for(std::size_t bytes, const ReadLimits& limits) noexcept {
  return limits.memory_bytes != 0 ? limits.memory_bytes : std::max(kLeast, try_multiply(bytes, kTimes).value_or(SIZE_MAX));
}

void refuse_room(std::size_t bytes, std::string_view name, const ReadLimits& limits) {
  const std::size_t room = room_for(bytes, limits);
  throw FormatError(ErrorCode::limit_exceeded,
                    {text::join("reading ", text::printable(name)),
                     text::join("what it describes takes more than ", text::bytes(room), " of memory, the limit here"),
                     "if you trust it, allow more (--max-memory 4GiB, ReadLimits::memory_bytes)"},
                    {{"limit", room}});
}

void refuse_time(std::string_view name, const ReadLimits& limits, std::chrono::duration<double> whole) {
  const std::chrono::milliseconds needed = rounded_up(std::max(whole, limits.time));
  throw Error(ErrorCode::timeout,
              {text::join("reading ", text::printable(name), " within ", text::duration(rounded_up(limits.time))),
               text::join("it takes about ", text::duration(needed), " here"),
               text::join("allow at least ", text::duration(rounded_up(2 * needed)))},
              {{"needed_ms", needed.count()}});
}

}  // namespace berth::internal::base
