// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "berth/export.h"

// What an allocator holds, at one moment. The figures of one call are consistent:
//
//     in_use_bytes + cached_bytes == committed_bytes          allocations == frees + live_blocks
//     in_use_bytes <= peak_in_use_bytes                       committed_bytes <= peak_committed_bytes
namespace berth {

class JsonWriter;  // base/json.h

struct Stats {
  std::size_t in_use_bytes = 0;     // requested by live blocks
  std::size_t cached_bytes = 0;     // held beyond that: free memory for reuse, and rounding
  std::size_t committed_bytes = 0;  // taken from the device
  std::size_t peak_in_use_bytes = 0;
  std::size_t peak_committed_bytes = 0;
  std::size_t table_bytes = 0;  // of a pool: host memory of its own tables, beyond committed_bytes. Else 0
  std::uint64_t live_blocks = 0;
  std::uint64_t allocations = 0;  // that succeeded
  std::uint64_t frees = 0;
  std::uint64_t failures = 0;   // requests refused, including those that were retried (memory/pressure.h)
  std::uint64_t commits = 0;    // times memory was committed
  std::uint64_t decommits = 0;  // times memory was decommitted, or moved

  BERTH_EXPORT void write_json(JsonWriter& json) const;
  friend bool operator==(const Stats&, const Stats&) = default;
};

}  // namespace berth
