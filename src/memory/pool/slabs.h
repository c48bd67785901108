// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "berth/base/result.h"
#include "memory/cache/block_table.h"
#include "memory/cache/size_classes.h"
#include "memory/space/extent.h"
#include "memory/space/node_pool.h"

// The small blocks that no thread cache has: slabs of equal blocks, each slab for one size class and one
// stream. The caller supplies the extent for a new slab, and takes over the extent of a slab whose last live
// block was freed. The pool's mutex guards everything.
namespace berth::internal::memory {

class Slabs {
 public:
  Slabs(const SizeClasses& classes, BlockTable& entries) noexcept : classes_(classes), entries_(entries) {}

  // Makes the table from offsets to slabs, for a range of so many bytes.
  Status open(std::size_t range_bytes) noexcept;
  bool add_stream(std::uint32_t stream) noexcept;

  // Takes up to `into.size()` free blocks of a class for an owner, and returns how many: 0 when no slab has
  // one. While most of the memory in slabs is free, but in other classes, the blocks may be up to twice as long
  // as the class: otherwise each size that a program uses for a while would hold memory of its own.
  std::size_t take(SizeClass size_class, std::uint32_t stream, std::uint32_t owner, std::span<BlockEntry*> into) noexcept;
  // Cuts an extent of ClassInfo::slab_bytes into blocks, for a `take` that must follow before the mutex is
  // released. False when there is no heap for the tables.
  bool add(PoolExtent* extent, SizeClass size_class, std::uint32_t stream) noexcept;

  // Returns a free block to its slab. If all of the slab's blocks are free then, removes the slab and returns
  // its extent; else nullptr.
  [[nodiscard]] PoolExtent* give(BlockEntry* entry) noexcept;
  // Prefetch what `give` reads, in two steps: the second reads what the first has fetched.
  void prefetch_cell(const BlockEntry* entry) const noexcept { __builtin_prefetch(table_ + entry->offset() / kSlabGrain); }
  void prefetch_slab(const BlockEntry* entry) const noexcept {
    const Slab* const slab = nodes_.at(table_[entry->offset() / kSlabGrain] - 1);
    __builtin_prefetch(slab, 1);
    __builtin_prefetch(&slab->is_free[0], 1);
  }

  // The entry of the block, small or large, that begins at an offset; nullptr when none does.
  BlockEntry* at(std::size_t offset) const noexcept;
  // The stream of the slab at an offset. REQUIRES: there is one.
  std::uint32_t stream_at(std::size_t offset) const noexcept { return nodes_.at(table_[offset / kSlabGrain] - 1)->stream; }
  // A slab by its number, from 1. REQUIRES: there is one.
  struct Look {
    std::uint32_t first_entry;
    SizeClass size_class;
    std::uint32_t stream;
  };
  Look look(std::uint32_t number) const noexcept {
    const Slab* const slab = nodes_.at(number - 1);
    return {slab->first_entry, slab->size_class, slab->stream};
  }
  // As `at`, for large blocks, whose extents are entered here.
  void enter_large(std::size_t offset, std::uint32_t entry) noexcept { table_[offset / kSlabGrain] = entry | kLargeBit; }
  void leave_large(std::size_t offset) noexcept { table_[offset / kSlabGrain] = 0; }

  std::size_t bytes() const noexcept { return slab_bytes_; }
  std::size_t free_bytes() const noexcept { return free_bytes_; }
  std::string audit() const;
  void close() noexcept;

 private:
  static constexpr std::size_t kMostBlocks = 1024;
  static constexpr int kMostSlabs = 8;  // that one batch is taken from
  static constexpr std::uint32_t kLargeBit = 1U << 31;
  static constexpr std::size_t kMuchFree = std::size_t{4} << 20;

  struct Slab {
    PoolExtent* extent = nullptr;
    Slab* previous = nullptr;  // in the list of slabs with free blocks
    Slab* next = nullptr;
    std::uint32_t index = 0;  // in the node pool
    std::uint32_t stream = 0;
    std::uint32_t first_entry = 0;
    SizeClass size_class = 0;
    std::uint32_t free = 0;
    std::array<std::uint64_t, kMostBlocks / 64> is_free{};
  };
  struct List {
    Slab* first = nullptr;
    Slab* last = nullptr;
  };
  using Lists = std::array<List, SizeClasses::kMost>;

  bool is_mostly_free() const noexcept { return free_bytes_ >= kMuchFree && free_bytes_ > slab_bytes_ / 2; }
  Slab* find_roomier(SizeClass size_class, std::uint32_t stream) const noexcept;
  void mark(const Slab& slab, std::uint32_t number) noexcept;
  List& list_of(const Slab& slab) noexcept { return (*lists_[slab.stream])[slab.size_class]; }
  void link_first(Slab* slab) noexcept;
  void link_last(Slab* slab) noexcept;
  void unlink(Slab* slab) noexcept;

  const SizeClasses& classes_;
  BlockTable& entries_;
  NodePool<Slab> nodes_;
  std::vector<std::unique_ptr<Lists>> lists_;  // by stream, then class: slabs with free blocks
  // For each grain of the range: the slab in it, from 1, or the entry of the large block that begins there.
  std::uint32_t* table_ = nullptr;
  std::size_t table_bytes_ = 0;
  std::size_t slab_bytes_ = 0;  // of all slabs
  std::size_t free_bytes_ = 0;  // of the free blocks in all slabs, and the slabs' tails
};

}  // namespace berth::internal::memory
