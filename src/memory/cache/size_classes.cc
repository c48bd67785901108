// SPDX-License-Identifier: Apache-2.0
#include "memory/cache/size_classes.h"

#include <algorithm>
#include <bit>

#include "berth/base/checked.h"

namespace berth::internal::memory {

namespace {

constexpr std::size_t kMostAlignment = 4096;  // of a device that has size classes at all
constexpr std::size_t kLeastSlab = std::size_t{64} << 10;
constexpr std::size_t kLeastBlocks = 4;

// The size of a class: the inverse of `of_last_byte`.
constexpr std::size_t bytes_of(SizeClass c) noexcept {
  const std::size_t units = c < 16 ? c + 1 : (std::size_t{c % 8 + 9}) << (c / 8 - 1);
  return units * SizeClasses::kUnit;
}
static_assert(bytes_of(SizeClasses::kMost - 1) == kSmallLimit);

// The smallest slab that holds a few blocks and wastes at most a thirty-second at its end.
std::size_t slab_for(std::size_t bytes) noexcept {
  std::size_t slab = std::max(kLeastSlab, *try_align_up(kLeastBlocks * bytes, kSlabGrain));
  while (slab % bytes > slab / 32) slab += kSlabGrain;
  return slab;
}

// How many blocks a slab has: as many as fit, or fewer if their entries then take less memory than the blocks
// that are given up: a table has room for one less than a power of two (block_table.h).
std::size_t blocks_in(std::size_t slab, std::size_t bytes) noexcept {
  constexpr std::size_t kEntry = 16;
  const std::size_t all = slab / bytes;
  const std::size_t fewer = std::bit_floor(all + 1) - 1;
  const auto cost_of = [&](std::size_t blocks) {
    return static_cast<double>(slab + std::bit_ceil(blocks + 1) * kEntry) / static_cast<double>(blocks);
  };
  return cost_of(fewer) < cost_of(all) ? fewer : all;
}

}  // namespace

SizeClasses::SizeClasses(std::size_t alignment) noexcept : alignment_(std::max(alignment, kUnit)) {
  if (alignment > kMostAlignment) return;
  for (; count_ < kMost; ++count_) {
    const std::size_t bytes = bytes_of(count_);
    const std::size_t slab = slab_for(bytes);
    info_[count_] = {static_cast<std::uint32_t>(bytes), static_cast<std::uint32_t>(slab),
                     static_cast<std::uint32_t>(blocks_in(slab, bytes))};
  }
}

SizeClass SizeClasses::find_aligned(std::size_t bytes, std::size_t alignment) const noexcept {
  if (count_ == 0 || alignment > kSlabGrain) return count_;
  SizeClass c = find(bytes);
  while (c < count_ && info_[c].bytes % alignment != 0) ++c;
  return c;
}

}  // namespace berth::internal::memory
