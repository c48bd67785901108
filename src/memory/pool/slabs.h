// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "memory/cache/block_table.h"
#include "memory/cache/size_classes.h"
#include "memory/pool/block_map.h"
#include "memory/space/extent.h"
#include "memory/space/node_pool.h"

// The small blocks that no thread cache has: slabs of equal blocks, each slab for one size class and one
// stream. The caller supplies the extent for a new slab, and takes over the extent of a slab whose last live
// block was freed. The pool's mutex guards everything.
namespace berth::internal::memory {

class Slabs {
 public:
  Slabs(const SizeClasses& classes, BlockTable& entries, BlockMap& map) noexcept : classes_(classes), entries_(entries), map_(map) {}

  bool add_stream(std::uint32_t stream) noexcept;

  // Takes up to `into.size()` free blocks of a class, and returns how many: 0 when no slab has
  // one. While most of the memory in slabs is free, but in other classes, the blocks may be up to twice as long
  // as the class: otherwise each size that a program uses for a while would hold memory of its own.
  std::size_t take(SizeClass size_class, std::uint32_t stream, std::span<BlockRef> into) noexcept;
  // Cuts an extent of ClassInfo::slab_bytes, which begins at an address, into blocks, for a `take` that must
  // follow before the mutex is released. False when there is no heap for the tables.
  bool add(PoolExtent* extent, const std::byte* begin, SizeClass size_class, std::uint32_t stream) noexcept;

  // Returns a free block to its slab. If all of the slab's blocks are free then, removes the slab and returns
  // its extent; else nullptr.
  [[nodiscard]] PoolExtent* give(BlockRef block) noexcept;
  // Prefetches what `give` changes. The block's group is in the processor's caches, or the call waits for it.
  void prefetch_slab(BlockRef block) const noexcept {
    const Slab* const slab = nodes_.at(block.group().number.load());
    __builtin_prefetch(slab, 1);
    __builtin_prefetch(&slab->is_free[0], 1);
  }

  // REQUIRES: a block of a slab.
  std::uint32_t stream_of(BlockRef block) const noexcept { return nodes_.at(block.group().number.load())->stream; }
  // A slab by its number, from 1. REQUIRES: there is one.
  struct Look {
    BlockRef first;
    SizeClass size_class;
    std::uint32_t stream;
  };
  Look look(std::uint32_t number) const noexcept {
    const Slab* const slab = nodes_.at(number - 1);
    return {slab->first, slab->size_class, slab->stream};
  }

  std::size_t bytes() const noexcept { return slab_bytes_; }
  std::size_t free_bytes() const noexcept { return free_bytes_; }
  std::size_t table_bytes() const noexcept { return nodes_.bytes(); }
  std::string audit() const;

 private:
  static constexpr int kMostSlabs = 8;  // that one batch is taken from
  static constexpr std::size_t kMuchFree = std::size_t{4} << 20;

  struct Slab {
    PoolExtent* extent = nullptr;
    Slab* previous = nullptr;  // in the list of slabs with free blocks
    Slab* next = nullptr;
    std::uint32_t index = 0;  // in the node pool
    std::uint32_t stream = 0;
    BlockRef first;
    SizeClass size_class = 0;
    std::uint32_t free = 0;
    std::array<std::uint64_t, (BlockTable::kMostBlocks + 63) / 64> is_free{};
  };
  struct List {
    Slab* first = nullptr;
    Slab* last = nullptr;
  };
  using Lists = std::array<List, SizeClasses::kMost>;

  bool is_mostly_free() const noexcept { return free_bytes_ >= kMuchFree && free_bytes_ > slab_bytes_ / 2; }
  Slab* find_roomier(SizeClass size_class, std::uint32_t stream) const noexcept;
  List& list_of(const Slab& slab) noexcept { return (*lists_[slab.stream])[slab.size_class]; }
  void link_first(Slab* slab) noexcept;
  void link_last(Slab* slab) noexcept;
  void unlink(Slab* slab) noexcept;

  const SizeClasses& classes_;
  BlockTable& entries_;
  BlockMap& map_;
  NodePool<Slab> nodes_;
  std::vector<std::unique_ptr<Lists>> lists_;  // by stream, then class: slabs with free blocks
  std::size_t slab_bytes_ = 0;                 // of all slabs
  std::size_t free_bytes_ = 0;                 // of the free blocks in all slabs, and the slabs' tails
};

}  // namespace berth::internal::memory
