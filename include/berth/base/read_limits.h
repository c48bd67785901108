// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>

// Limits for readers of files of any size and origin.
namespace berth {

struct ReadLimits {
  // For all that is built while reading, the bytes given included; 0: the larger of 40 times those bytes and 256 MiB.
  // What would need more is refused with FormatError(limit_exceeded).
  std::size_t memory_bytes = 0;

  // Where this is too short, reading stops with Error(timeout), whose fact needed_ms estimates how long it takes.
  std::chrono::duration<double> time = std::chrono::duration<double>::max();
};

}  // namespace berth
