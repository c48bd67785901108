// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "berth/memory/stats.h"
#include "memory/holders.h"

// Keeps the Stats of one allocator, and who holds how much: its owner reports each event, and the sums, the peaks
// and the bytes that are cached follow. For strategies (direct, arena, buckets), and for the check adaptor, which counts blocks
// only: an owner that never commits leaves the other figures 0. Not thread-safe: its owner locks.
namespace berth::internal::memory {

class Usage {
 public:
  // Makes room for the sums of a tag. False when there is no heap.
  [[nodiscard]] bool reserve(Tag tag) noexcept { return holders_.reserve(tag); }
  // REQUIRES: there is room for the tag.
  void count_allocation(Tag tag, std::size_t bytes) noexcept {
    holders_.add(tag, bytes);
    ++stats_.allocations;
    ++stats_.live_blocks;
    add_in_use(bytes);
  }
  void count_free(Tag tag, std::size_t bytes) noexcept {
    holders_.remove(tag, bytes);
    ++stats_.frees;
    --stats_.live_blocks;
    stats_.in_use_bytes -= bytes;
  }
  // In place: a free and an allocation, of which no moment in between is seen.
  void count_growth(Tag tag, std::size_t from_bytes, std::size_t to_bytes) noexcept {
    holders_.remove(tag, from_bytes);
    holders_.add(tag, to_bytes);
    ++stats_.allocations;
    ++stats_.frees;
    add_in_use(to_bytes - from_bytes);
  }
  void count_refusal() noexcept { ++stats_.failures; }

  void count_commit(std::size_t bytes) noexcept {
    ++stats_.commits;
    stats_.committed_bytes += bytes;
    stats_.peak_committed_bytes = std::max(stats_.peak_committed_bytes, stats_.committed_bytes);
  }
  void count_decommit(std::size_t bytes) noexcept {
    ++stats_.decommits;
    stats_.committed_bytes -= bytes;
  }
  // In two steps, for an owner that releases its lock while it asks the device: the bytes are not committed meanwhile,
  // and again if the device refuses.
  void begin_decommit(std::size_t bytes) noexcept { stats_.committed_bytes -= bytes; }
  void end_decommit(std::size_t bytes, bool done) noexcept {
    if (done)
      ++stats_.decommits;
    else
      stats_.committed_bytes += bytes;
  }

  std::size_t in_use_bytes() const noexcept { return stats_.in_use_bytes; }
  std::size_t committed_bytes() const noexcept { return stats_.committed_bytes; }
  std::size_t cached_bytes() const noexcept { return counts_blocks_only() ? 0 : stats_.committed_bytes - stats_.in_use_bytes; }
  std::size_t peak_in_use_bytes() const noexcept { return stats_.peak_in_use_bytes; }
  std::size_t peak_committed_bytes() const noexcept { return stats_.peak_committed_bytes; }
  std::uint64_t live_blocks() const noexcept { return stats_.live_blocks; }
  Stats stats() const noexcept;
  std::vector<Holder> holders() const { return holders_.holders(); }  // most_first() needs no lock

  // What does not add up, after the name of the owner ("direct: a peak is too low"), or an empty string. That
  // the figures are those of the blocks is for the owner to check.
  std::string audit(std::string_view name) const;

 private:
  bool counts_blocks_only() const noexcept { return stats_.commits == 0; }
  void add_in_use(std::size_t bytes) noexcept {
    stats_.in_use_bytes += bytes;
    stats_.peak_in_use_bytes = std::max(stats_.peak_in_use_bytes, stats_.in_use_bytes);
  }

  // allocations == frees + live_blocks
  // in_use_bytes <= peak_in_use_bytes, committed_bytes <= peak_committed_bytes
  // in_use_bytes <= committed_bytes, unless it counts blocks only
  // in_use_bytes and live_blocks are the sums over holders_
  Stats stats_;  // cached_bytes stays 0: it follows from the others
  HolderTotals holders_;
};

}  // namespace berth::internal::memory
