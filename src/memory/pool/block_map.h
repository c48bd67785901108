// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "memory/cache/block_table.h"
#include "memory/cache/size_classes.h"

// From offsets in a pool's range to blocks: for each grain of the range the group that lies in it, a slab's or
// a large block's. It is kept once a block was looked for by its address, since most programs never do that,
// and grows with the part of the range that has been used since. Not thread-safe: the pool locks.
namespace berth::internal::memory {

class BlockMap {
 public:
  // From now on all groups are entered. The caller enters those that there are.
  void keep() noexcept { is_kept_ = true; }
  bool is_kept() const noexcept { return is_kept_; }

  // Makes room for what is in [begin, begin + bytes). False when there is no heap.
  bool reserve(std::size_t begin, std::size_t bytes) noexcept { return !is_kept_ || has_room(begin, bytes) || grow(begin, bytes); }
  // REQUIRES: there is room. `first`: of the group; null: there is none any more.
  void set(std::size_t begin, std::size_t bytes, BlockRef first) noexcept {
    if (!is_kept_ || !has_room(begin, bytes)) return;
    for (std::size_t grain = begin / kSlabGrain; grain <= (begin + bytes - 1) / kSlabGrain; ++grain)
      (*leaves_[grain / kGrains])[grain % kGrains] = first;
  }

  // The block that begins at an offset of the range, small or large; null when none does.
  BlockRef find(std::size_t offset, const std::byte* base) const noexcept;
  // The one at an address, of a group; null when none begins there.
  static BlockRef find(BlockRef first, const std::byte* address) noexcept;

  std::size_t bytes() const noexcept { return leaves_.capacity() * sizeof(leaves_[0]) + made_ * sizeof(Leaf); }

 private:
  static constexpr std::size_t kGrains = 1024;  // of a leaf: 16 MiB of the range
  using Leaf = std::array<BlockRef, kGrains>;

  static std::size_t leaf_of(std::size_t offset) noexcept { return offset / kSlabGrain / kGrains; }
  bool has(std::size_t leaf) const noexcept { return leaf < leaves_.size() && leaves_[leaf] != nullptr; }
  bool has_room(std::size_t begin, std::size_t bytes) const noexcept { return has(leaf_of(begin)) && has(leaf_of(begin + bytes - 1)); }
  bool grow(std::size_t begin, std::size_t bytes) noexcept;

  std::vector<std::unique_ptr<Leaf>> leaves_;
  std::size_t made_ = 0;
  bool is_kept_ = false;
};

}  // namespace berth::internal::memory
