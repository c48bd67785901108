// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "berth/memory/out_of_memory.h"

namespace berth::internal::memory {

// Sums up who holds how much. Tags are numbered from 0 without gaps, so that a block costs one addition however
// many tags there are, because strategies do this under their lock. Not thread-safe.
class HolderTotals {
 public:
  void add(Tag tag, std::size_t bytes);

  // Those that hold something, largest first; ties are ordered by tag, so that reports are deterministic.
  std::vector<Holder> most_first() const;

 private:
  std::vector<Holder> by_id_;
};

// The first eight, for a report.
std::vector<Holder> top_holders(std::vector<Holder> holders);

}  // namespace berth::internal::memory
