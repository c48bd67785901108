// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

// Which cells of a region are used: runs of them are taken and given, the lowest that is long enough first. It
// knows no memory. Not thread-safe.
namespace berth::internal::memory {

class CellMap {
 public:
  static constexpr std::uint32_t kCells = 1022;
  static constexpr std::uint32_t kNone = UINT32_MAX;

  // The first of a run of so many, which are used from now on; kNone when there is none. REQUIRES: count > 0.
  std::uint32_t take(std::uint32_t count) noexcept;
  // The run that ends before `end` becomes so many longer. False when what follows is used, or there is no
  // more.
  bool extend(std::uint32_t end, std::uint32_t count) noexcept;
  // REQUIRES: they are used.
  void give(std::uint32_t first, std::uint32_t count) noexcept;

  std::uint32_t used() const noexcept { return used_; }
  // The first used cell from one on; kCells when there is none. REQUIRES: at <= kCells.
  std::uint32_t next_used(std::uint32_t at) const noexcept;
  // No free run is longer. It is exact after a `take` that found none.
  std::uint32_t longest() const noexcept { return longest_; }

 private:
  static constexpr std::uint32_t kWords = 16;
  static constexpr std::uint32_t kBits = 64;

  std::uint32_t next_free(std::uint32_t at) const noexcept;      // from a cell on; kCells or more: there is none
  std::uint32_t run_begin(std::uint32_t before) const noexcept;  // of the free run that ends before a cell
  void flip(std::uint32_t first, std::uint32_t count) noexcept;

  // By cell, 1: used. Behind the last cell are used ones, where every search ends.
  std::array<std::uint64_t, kWords> is_used_ = ends();
  std::uint32_t used_ = 0;
  std::uint32_t longest_ = kCells;

  static constexpr std::array<std::uint64_t, kWords> ends() noexcept {
    std::array<std::uint64_t, kWords> words{};
    words[kCells / kBits] = ~std::uint64_t{0} << (kCells % kBits);
    return words;
  }
};

}  // namespace berth::internal::memory
