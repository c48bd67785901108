// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "plan/pack/in_time.h"
#include "plan/problem.h"

// Address spaces during a sweep over time: what lives, and what is free between.
namespace berth::internal::plan {

inline constexpr std::size_t kEndlessSpace = SIZE_MAX / 2;  // a space of this size never ends

// Each space is a doubly linked list of contiguous pieces, free or taken; free neighbours are coalesced, and spaces
// are not. A call takes the logarithm of the number of free ranges.
class Ranges {
 public:
  struct Place {
    std::uint32_t space;
    std::size_t offset;  // in its space
  };

  explicit Ranges(std::size_t buffers) : piece_of_(buffers, kNone) {}

  // Returns its number; they count from 0.
  std::uint32_t add_space(std::size_t bytes);

  // Allocates a buffer that ends at `dies`; nothing when no free range holds it, of those that are looked at: where
  // alignments differ these are not all.
  std::optional<Place> place(std::uint32_t index, const PackBuffer& buffer, std::uint32_t dies, Choice choice);
  void release(std::uint32_t index);

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  static constexpr std::uint32_t kFree = UINT32_MAX;

  struct Piece {
    std::size_t offset = 0;
    std::size_t end = 0;
    std::uint32_t space = 0;
    std::uint32_t dies = kFree;
    std::uint32_t below = kNone;
    std::uint32_t above = kNone;
  };

  struct FreeRange {
    std::size_t bytes;
    std::uint32_t space;
    std::uint32_t piece;
    std::size_t offset;
    friend bool operator<(const FreeRange& a, const FreeRange& b) {
      if (a.bytes != b.bytes) return a.bytes < b.bytes;
      return a.space != b.space ? a.space < b.space : a.offset < b.offset;
    }
  };
  using FreeRanges = std::set<FreeRange>;

  FreeRange as_free(std::uint32_t at) const;
  void add_free(std::uint32_t at) { free_.insert(as_free(at)); }
  void drop_free(std::uint32_t at) { free_.erase(as_free(at)); }
  FreeRanges::const_iterator of_at_least(std::size_t bytes) const { return free_.lower_bound({bytes, 0, 0, 0}); }
  std::uint32_t new_piece();
  std::uint32_t insert_before(std::uint32_t at, std::size_t offset, std::size_t end);
  void unlink(std::uint32_t at);
  std::uint32_t smallest(const PackBuffer& buffer) const;
  std::uint32_t together(const PackBuffer& buffer, std::uint32_t dies) const;
  std::uint32_t distance(std::uint32_t at, std::uint32_t dies) const;

  std::vector<Piece> pieces_;
  std::vector<std::uint32_t> spare_;     // unused entries of pieces_
  std::vector<std::uint32_t> piece_of_;  // of each buffer
  std::uint32_t spaces_ = 0;
  FreeRanges free_;
};

}  // namespace berth::internal::plan
