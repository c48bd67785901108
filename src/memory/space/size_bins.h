// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "memory/space/extent.h"

// Free extents by size, for best fit: eight bins for each doubling, each with a list, and a bitmap of those that have
// any. In a bin the best of the first few that fit is taken: their sizes differ by an eighth at most. Not thread-safe.
namespace berth::internal::memory {

class SizeBins {
 public:
  void insert(PoolExtent* extent) noexcept {
    PoolExtent*& first = first_[bin_of(extent->bytes)];
    extent->bin = static_cast<std::uint16_t>(&first - first_.data());
    extent->bin_previous = nullptr;
    extent->bin_next = first;
    if (first != nullptr) first->bin_previous = extent;
    first = extent;
    any_[extent->bin / 64] |= std::uint64_t{1} << (extent->bin % 64);
  }

  void erase(PoolExtent* extent) noexcept {
    (extent->bin_previous == nullptr ? first_[extent->bin] : extent->bin_previous->bin_next) = extent->bin_next;
    if (extent->bin_next != nullptr) extent->bin_next->bin_previous = extent->bin_previous;
    if (first_[extent->bin] == nullptr) any_[extent->bin / 64] &= ~(std::uint64_t{1} << (extent->bin % 64));
  }

  void resized(PoolExtent* extent) noexcept {
    if (bin_of(extent->bytes) == extent->bin) return;
    erase(extent);
    insert(extent);
  }

  // One of the shortest that have at least so many bytes, the lowest of those of equal length; nullptr when there is
  // none. REQUIRES: bytes > 0.
  PoolExtent* best(std::size_t bytes) const noexcept {
    for (std::size_t bin = next_bin(bin_of(bytes)); bin < kBins; bin = next_bin(bin + 1)) {
      if (PoolExtent* const found = best_in(bin, bytes)) return found;
    }
    return nullptr;
  }

 private:
  static constexpr std::size_t kPerDoubling = 8;
  static constexpr std::size_t kBins = 64 * kPerDoubling;
  static constexpr int kMostLooks = 32;

  static std::size_t bin_of(std::size_t bytes) noexcept {
    const auto order = static_cast<std::size_t>(std::bit_width(bytes) - 1);
    return order < 3 ? order * kPerDoubling : order * kPerDoubling + (bytes >> (order - 3)) % kPerDoubling;
  }

  std::size_t next_bin(std::size_t bin) const noexcept {
    std::size_t at = bin / 64;
    if (at >= any_.size()) return kBins;
    std::uint64_t word = any_[at] >> (bin % 64) << (bin % 64);
    while (word == 0 && ++at < any_.size()) word = any_[at];
    return word == 0 ? kBins : at * 64 + static_cast<std::size_t>(std::countr_zero(word));
  }

  PoolExtent* best_in(std::size_t bin, std::size_t bytes) const noexcept {
    PoolExtent* best = nullptr;
    int looks = 0;
    for (PoolExtent* e = first_[bin]; e != nullptr && (looks < kMostLooks || best == nullptr); e = e->bin_next, ++looks) {
      if (e->bytes < bytes) continue;
      if (best == nullptr || e->bytes < best->bytes || (e->bytes == best->bytes && e->begin < best->begin)) best = e;
    }
    return best;
  }

  std::array<PoolExtent*, kBins> first_{};
  std::array<std::uint64_t, kBins / 64> any_{};
};

}  // namespace berth::internal::memory
