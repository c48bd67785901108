// SPDX-License-Identifier: Apache-2.0
#include "memory/cache/size_classes.h"

#include <algorithm>

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

}  // namespace

SizeClasses::SizeClasses(std::size_t alignment) noexcept : alignment_(std::max(alignment, kUnit)) {
  if (alignment > kMostAlignment) return;
  for (; count_ < kMost; ++count_) {
    const std::size_t bytes = bytes_of(count_);
    const std::size_t slab = slab_for(bytes);
    info_[count_] = {static_cast<std::uint32_t>(bytes), static_cast<std::uint32_t>(slab), static_cast<std::uint32_t>(slab / bytes)};
  }
}

SizeClass SizeClasses::find_aligned(std::size_t bytes, std::size_t alignment) const noexcept {
  if (count_ == 0 || alignment > kSlabGrain) return count_;
  SizeClass c = find(bytes);
  while (c < count_ && info_[c].bytes % alignment != 0) ++c;
  return c;
}

}  // namespace berth::internal::memory
