// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/poison.h"
#include "base/relaxed.h"
#include "berth/device/backend.h"
#include "berth/memory/block.h"
#include "berth/memory/pool.h"
#include "memory/budget.h"
#include "memory/cache/block_table.h"
#include "memory/cache/size_classes.h"
#include "memory/inherited.h"
#include "memory/pool/block_map.h"
#include "memory/pool/pool_usage.h"
#include "memory/pool/slabs.h"
#include "memory/space/decay.h"
#include "memory/space/space.h"
#include "os/lock/mutex.h"
#include "os/process/fork.h"

// What the parts of a pool have in common: its address range, the tables of blocks, and the mutex that guards
// both. Each part keeps its own state beside this and checks it in its own `audit`. A part calls only those
// below it:
//
//     Pool            the allocator: routes each request, reports
//     SmallBlocks     blocks of slabs, by way of the thread caches  |  LargeBlocks   blocks with an extent of their own
//     MediumBlocks    blocks of regions, where threads would wait
//     Escalation      what is tried for a request, with growing effort  |  PoolWalk   the list of blocks of a snapshot
//     Supply          decay, trim, holds, and the pools that share pages
//     Regions         what threads allocate from without the mutex
//     CacheSet        what threads keep
//     StreamBook      which streams may still use freed memory
//     PoolCore        Space (extents, pages), Slabs, BlockTable, BlockMap, counts
//
// A member function of a part that says "with the mutex" requires that the caller holds `PoolCore::mutex`,
// which clang cannot check across classes; if it may release the mutex meanwhile, it says so.
namespace berth::internal::memory {

struct PoolCore {
  struct Setup {
    PoolOptions options;
    std::size_t page_bytes;
    Budget* below;                 // the budget below the pool's own: the process's, or the parent's
    PageLender* lender = nullptr;  // of a private pool: its parent
    bool fixed_pages = false;
  };
  static constexpr Failure kNoTables = BlockTable::kNoTables;

  PoolCore(Backend& pool_backend, std::uint64_t pool_id, const Setup& setup);

  // Reserves the address range and makes the tables, once. With the mutex; releases it.
  Status open() noexcept;
  bool is_open() const noexcept { return base() != nullptr; }
  std::byte* base() const noexcept { return reinterpret_cast<std::byte*>(base_.load()); }
  std::size_t offset_of(const void* data) const noexcept { return static_cast<std::size_t>(static_cast<const std::byte*>(data) - base()); }

  // The entry of a block that came from outside, or null. A block made by block_at, of which only the
  // address is known, gets its serial. Without the mutex.
  BlockRef find(Block& block) noexcept;
  // REQUIRES: a large block. With the mutex.
  PoolExtent* extent_of(BlockRef block) const noexcept { return space.extent(block.extent_number()); }
  // `visit(block, bytes)` for each live block of the next part of the table, from `at` on (0). False after the
  // last: a pool of many million blocks is visited in steps, between which others have the mutex. With the
  // mutex.
  template <class Visit>
  bool visit_live(std::size_t& at, Visit visit) const {
    constexpr std::size_t kStep = 4;  // chunks of some thousand entries: some tenths of a millisecond
    return entries.visit_live(at, kStep,
                              [&](BlockRef block) { visit(block, block.is_large() ? extent_of(block)->requested : block->small_bytes()); });
  }
  // What all tables take, on the host: of blocks, slabs and extents.
  std::size_t table_bytes() const noexcept { return entries.bytes() + blocks.bytes() + slabs.table_bytes() + space.table_bytes(); }

  // Whether this is a forked child that must leave the pool, and what is on its device, alone.
  bool is_inherited() const noexcept { return memory::is_inherited(origin, backend); }
  // Whether the address sanitizer is told which memory is free.
  bool poisons() const noexcept { return kAddressSanitizer && backend.properties().abilities.host_access; }

  Backend& backend;
  const std::uint64_t id;  // the allocator's
  const os::Origin origin;
  const SizeClasses classes;
  const std::size_t small_limit;  // requests up to this are small; kSmallLimit at most
  const std::size_t alignment;    // of every small block
  const std::size_t page_bytes;
  const std::chrono::milliseconds decay_period;
  const double target_ratio;
  const std::uint32_t region_waits;
  const bool wait_for_streams;
  const bool background_trim;
  const bool fixed_pages;
  Budget budget;
  BlockTable entries;

  mutable os::Mutex mutex;
  Relaxed<std::uint32_t> waits;  // of requests for large memory, and frees, that found the mutex locked
  Decay decay;
  Space space;
  BlockMap blocks;
  Slabs slabs;
  PoolUsage usage;

 private:
  BlockRef find_at(std::size_t offset) noexcept;

  Relaxed<std::uintptr_t> base_;  // of the range, once there is one; a thread that has a block has seen it set
};

}  // namespace berth::internal::memory
