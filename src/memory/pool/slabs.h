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
#include "memory/pool/space.h"
#include "memory/stream_uses.h"

// The small blocks that no thread cache has: slabs of equal blocks, each slab for one size class and one stream. A slab whose last block
// comes back goes back to the space. The pool's mutex guards everything.
namespace berth::internal::memory {

class Slabs {
 public:
  Slabs(const SizeClasses& classes, Space& space, BlockTable& entries, StreamUses& streams) noexcept
      : classes_(classes), space_(space), entries_(entries), streams_(streams) {}

  // The table of which slab is where, for a range of so many bytes.
  Status open(std::size_t range_bytes) noexcept;
  bool add_stream(std::uint32_t stream) noexcept;

  // Takes up to `into.size()` free blocks of a class, at least one, and gives them to an owner. While most of the memory in slabs is free,
  // but in other classes, they may be longer than the class, up to twice: else each size that a program uses for a while would
  // keep memory of its own. A new slab goes to the device, as far as the effort allows, and lets go of the lock meanwhile.
  Result<std::size_t> take(SizeClass size_class, std::uint32_t stream, std::uint32_t owner, Space::Effort effort,
                           std::span<BlockEntry*> into) noexcept;

  // Takes a free block back.
  void give(BlockEntry* entry) noexcept;
  // Fetch what `give` will look at, in two steps: the second looks at what the first has fetched.
  void prefetch_entry(const BlockEntry* entry) const noexcept { __builtin_prefetch(table_ + entry->offset() / kSlabGrain); }
  void prefetch_slab(const BlockEntry* entry) const noexcept {
    const Slab* const slab = nodes_.at(table_[entry->offset() / kSlabGrain] - 1);
    __builtin_prefetch(slab, 1);
    __builtin_prefetch(&slab->is_free[0], 1);
  }

  // The entry of the block that begins at an offset; nullptr when no small block does.
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
  // As `at`, for large blocks, whose extents the pool enters here.
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
    std::uint32_t index = 0;  // its place in the node pool
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
  Result<Slab*> make(SizeClass size_class, std::uint32_t stream, Space::Effort effort) noexcept;
  void mark(const Slab& slab, std::uint32_t number) noexcept;
  List& list_of(const Slab& slab) noexcept { return (*lists_[slab.stream])[slab.size_class]; }
  void link_last(Slab* slab) noexcept;
  void unlink(Slab* slab) noexcept;

  const SizeClasses& classes_;
  Space& space_;
  BlockTable& entries_;
  StreamUses& streams_;
  NodePool<Slab> nodes_;
  std::vector<std::unique_ptr<Lists>> lists_;  // by stream, then class: slabs with free blocks
  std::uint32_t* table_ =
      nullptr;  // for each grain of the range: the slab in it, from 1, or the entry of the large block that begins there
  std::size_t table_bytes_ = 0;
  std::size_t slab_bytes_ = 0;  // of all slabs
  std::size_t free_bytes_ = 0;  // of the free blocks in all slabs, and the slabs' tails
};

}  // namespace berth::internal::memory
