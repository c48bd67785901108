// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "memory/cache/block_table.h"
#include "memory/cache/size_classes.h"

// From offsets in a pool's range to blocks: for each grain of the range the group that lies in it, a slab's or
// a large block's. It grows with the part of the range that has ever been used. Not thread-safe: the pool locks.
namespace berth::internal::memory {

class BlockMap {
 public:
  // Makes room for what is in [begin, begin + bytes). False when there is no heap.
  bool reserve(std::size_t begin, std::size_t bytes) noexcept;
  // REQUIRES: there is room. `first`: of the group; null: there is none any more.
  void set(std::size_t begin, std::size_t bytes, BlockRef first) noexcept;

  // The block that begins at an offset of the range, small or large; null when none does.
  BlockRef find(std::size_t offset, const std::byte* base) const noexcept;

  std::size_t bytes() const noexcept { return leaves_.capacity() * sizeof(leaves_[0]) + made_ * sizeof(Leaf); }

 private:
  static constexpr std::size_t kGrains = 1024;  // of a leaf: 16 MiB of the range
  using Leaf = std::array<BlockRef, kGrains>;

  std::vector<std::unique_ptr<Leaf>> leaves_;
  std::size_t made_ = 0;
};

}  // namespace berth::internal::memory
