// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// What was done for a request before it was refused, for its report. The thread that was refused reads it.
namespace berth::internal::memory {

struct SearchSteps {
  std::uint64_t pool = 0;          // whose request it was: the allocator's id
  std::size_t emptied_bytes = 0;   // that threads kept, and that lay in regions
  std::uint64_t moves = 0;         // of free pages or pieces, by any thread meanwhile
  std::uint64_t waits = 0;         // for frees of streams
  bool waits_for_streams = false;  // PoolOptions::wait_for_streams
  bool asked_relatives = false;    // pools that share pages with this one

  std::vector<std::string> to_strings() const;
};

// Of the last request of this thread that a pool refused.
SearchSteps& last_search() noexcept;

}  // namespace berth::internal::memory
