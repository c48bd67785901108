// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "berth/memory/block_source.h"
#include "memory/pool/cache_set.h"
#include "memory/pool/supply.h"

// The large blocks of a pool, each with an extent of its own. The mutex guards them, except for a block that
// its thread frees and allocates over and over: it stays with the thread's cache (`ThreadCache::kept`). Between
// two requests it is in no free list, and its thread takes no lock for it.
//
// In a pool of several streams no block is kept: the others could have it only behind all that its own gets later.
//
// A kept block is recalled for anything else: growing it, using it on another stream, freeing it from another
// thread. It is released when its thread asks for large memory of another size, and with the rest of the cache.
namespace berth::internal::memory {

class LargeBlocks {
 public:
  using When = BlockSource::When;

  LargeBlocks(PoolCore& core, StreamBook& book, CacheSet& caches, Supply& supply) noexcept
      : core_(core), book_(book), caches_(caches), supply_(supply) {}

  // Without the mutex.
  Status obtain(const Request& request, Block& block) noexcept;
  BlockVerdict free(BlockRef entry, const Block& block, When when) noexcept;
  bool grow(BlockRef entry, Block& block, std::size_t bytes) noexcept;  // into free memory behind it

  // Notes that a stream, by number, uses the block in addition to the block's own. With the mutex.
  Result<BlockVerdict> note_use(BlockRef entry, const Block& block, StreamRef stream, std::uint32_t number) noexcept;

 private:
  bool obtain_kept(const Request& request, Block& block) const noexcept;
  bool free_kept(BlockRef entry, const Block& block) noexcept;
  Result<PoolExtent*> take(const Request& request, std::size_t bytes) noexcept;
  void hand_out(PoolExtent& extent, const Request& request, Block& block) noexcept;
  BlockVerdict judge(BlockRef entry, const Block& block) const noexcept;
  // Takes in what the calling thread's cache has counted and, if asked, releases the free block that it keeps,
  // so that the space has all that this thread has freed.
  enum class Kept : bool { stays, ends };
  void take_in(ThreadCache* own, Kept kept) noexcept;
  BlockVerdict recall(BlockRef entry, const Block& block) noexcept;
  PoolExtent& extent_of(BlockRef entry) const noexcept { return *core_.extent_of(entry); }

  PoolCore& core_;
  StreamBook& book_;
  CacheSet& caches_;
  Supply& supply_;
};

}  // namespace berth::internal::memory
