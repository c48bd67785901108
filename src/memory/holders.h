// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "berth/memory/out_of_memory.h"

namespace berth::internal::memory {

// Who holds how much: the sums of live blocks by tag. An owner that keeps them up to date answers in the time of
// the tags, however many blocks there are. Tags are numbered from 0 without gaps: an allocator that uses few of
// them has few chunks. Not thread-safe.
class HolderTotals {
 public:
  // Makes room for a tag. False when there is no heap.
  [[nodiscard]] bool reserve(Tag tag) noexcept;

  // REQUIRES: there is room for the tag.
  void add(Tag tag, std::size_t bytes) noexcept {
    Sum& sum = sum_of(tag);
    sum.bytes += bytes;
    ++sum.blocks;
  }
  // REQUIRES: the block was added.
  void remove(Tag tag, std::size_t bytes) noexcept {
    Sum& sum = sum_of(tag);
    sum.bytes -= bytes;
    --sum.blocks;
  }

  // Those that hold something, in no order that a user would expect.
  std::vector<Holder> holders() const;

 private:
  struct Sum {
    std::size_t bytes = 0;
    std::uint64_t blocks = 0;
  };
  static constexpr std::size_t kChunk = 64;

  Sum& sum_of(Tag tag) noexcept { return (*chunks_[tag.id() / kChunk])[tag.id() % kChunk]; }

  std::vector<std::unique_ptr<std::array<Sum, kChunk>>> chunks_;  // null where no tag was reserved
};

// Largest first; ties are ordered by tag, so that reports are deterministic.
std::vector<Holder> most_first(std::vector<Holder> holders);

// The first eight, for a report.
std::vector<Holder> top_holders(std::vector<Holder> holders);

}  // namespace berth::internal::memory
