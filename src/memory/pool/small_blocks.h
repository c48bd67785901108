// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/relaxed.h"
#include "berth/memory/block_source.h"
#include "memory/pool/cache_set.h"
#include "memory/pool/supply.h"

// The small blocks of a pool: cut from slabs, and handed out by way of the calling thread's cache.
//
//     obtain ─► the thread's bin of the size class ─► the usual end, no lock (the fast path has tried it already)
//                 │ empty: read the inbox, else refill: a batch from the slabs, under the mutex
//                 ▼
//               Slabs ─► Space ─► Backend
//
// Every free ends where the block came from: in its owner's bin, by way of the inbox when another thread frees
// it.
namespace berth::internal::memory {

class SmallBlocks {
 public:
  using When = BlockSource::When;

  SmallBlocks(PoolCore& core, StreamBook& book, CacheSet& caches, Supply& supply) noexcept
      : core_(core), book_(book), caches_(caches), supply_(supply) {}

  // Without the mutex. No answer: no slab can serve the request, but a large block may.
  std::optional<Status> obtain(const Request& request, Block& block) noexcept;
  BlockVerdict free(BlockRef entry, const Block& block, When when) noexcept;
  bool grow(BlockRef entry, Block& block, std::size_t bytes) noexcept;  // within its size class

  // Notes that a stream, by number, uses the block in addition to the block's own. With the mutex.
  Result<BlockVerdict> note_use(BlockRef entry, const Block& block, StreamRef stream, std::uint32_t number) noexcept;

 private:
  static constexpr std::size_t kBatch = 16;  // blocks fetched from the slabs at a time, at most

  // Requests.
  SizeClass class_of(const Request& request) const noexcept;
  Status obtain_without_cache(SizeClass size_class, const Request& request, Block& block) noexcept;
  Result<std::size_t> refill(ThreadCache& cache, SizeClass size_class, std::span<BlockRef> batch, const Spill& spill) noexcept;
  Status take(SizeClass size_class, std::uint32_t stream, std::span<BlockRef> into, std::size_t& count) noexcept;
  Status add_slab(SizeClass size_class, std::uint32_t stream, Space::Effort effort) noexcept;
  void flush_own_cache() noexcept;
  static void hand_out(ThreadCache& cache, BlockRef entry, SizeClass size_class, const Request& request, Block& block) noexcept;
  std::size_t batch_of(SizeClass size_class) const noexcept;

  // Bins that are full.
  void make_room(ThreadCache& cache, SizeClass size_class, Spill& spill) noexcept;
  void shrink_a_bin(ThreadCache& cache, SizeClass but_not, Spill& spill) noexcept;
  void return_spill(const Spill& spill) noexcept;

  // Frees.
  BlockVerdict free_own(ThreadCache& cache, BlockRef entry, const Block& block) noexcept;
  BlockVerdict send_home(ThreadCache& owner, BlockRef entry, const Block& block) noexcept;
  BlockVerdict free_under_lock(BlockRef entry, const Block& block, When when) noexcept;

  // Growth.
  bool may_grow(BlockRef entry, const Block& block, std::size_t bytes) const noexcept;
  bool grow_in_cache(ThreadCache& cache, BlockRef entry, Block& block, std::size_t bytes) noexcept;

  PoolCore& core_;
  StreamBook& book_;
  CacheSet& caches_;
  Supply& supply_;
  Relaxed<std::size_t> cache_budget_;  // what each cache may keep, if it is more than the least
};

}  // namespace berth::internal::memory
