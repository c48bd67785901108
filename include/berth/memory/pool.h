// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "berth/export.h"
#include "berth/memory/allocator.h"

// The default strategy, for every kind of memory. A pool reserves one address range and commits as much of it
// as is needed. Small blocks come from slabs of equal blocks, through thread caches that take no lock; large
// blocks come from the first free extent that fits, on a GPU from the shortest. When none fits but enough pages
// are free elsewhere, the pages are moved, so that external fragmentation costs little memory. Any thread may call
// anything.
//
//     auto gpu = pool("cuda:0", {.limit_bytes = 8_GiB});
//     Block b = gpu->allocate({.bytes = 1 << 20, .stream = s});
//
// The most it holds. Large blocks (more than `small_bytes`): whole free pages are moved before new ones are
// committed, so that the overhead beyond the peak of live bytes is the partly used pages at the ends of blocks,
// at most two for each block. Where pages are huge and free memory lies in shorter holes, those are moved when
// more than `target_ratio` and 4 % of the peak would be committed, except holes of less than 16 units of the
// device (64 KiB of host memory): every other of 20,000 blocks of 256 KiB freed, and blocks of 512 KiB
// allocated and written, holds 1.05 times the peak, and each takes 0.22 to 0.69 ms. With a target_ratio of 1.5
// nothing is moved: 1.50 times the peak, and 0.03 to 0.64 ms, as fast as the machine has fresh pages. Before a
// request is refused, all that is free is gathered, in the smallest units (or whole pieces) that the device can
// move: what trim() would return, and what the limit leaves, is within reach.
//
// Small blocks: a slab serves one size class and one stream, and is held while any block in it is live; a new
// slab is made only when those of its class have no free block. So each class holds at most what it held at its
// own peak, rounded up to slabs, and what the thread caches keep: 2 MiB each, or together a sixteenth of the
// memory in slabs if that is more. That is little over the peak when the mix of sizes is steady: 1.3 times for
// random sizes in our tests, 2.9 for sizes that shrink while a part of each stays. While more than half of the
// memory in slabs is free, larger free blocks also serve smaller requests, down to half their size. An
// adversarial program (phases of one size each, one block of every slab kept) then gets about one share of its
// peak for each doubling of sizes: at most 12 times the peak where blocks are aligned to 512, 15 times at 64,
// in the test that tries. trim() does not help there, as no slab is free; it helps to allocate what outlives a
// phase from an arena, or from a pool of its own.
//
// Many threads. Small blocks need no lock; large ones take the pool's mutex. Where threads wait for it (see
// `region_waits`), blocks of 128 KiB to 1 MiB that have no stream come from regions instead, each of 8 MiB and
// under one of many locks. A region is held while any block in it is live; a new one is made only when none
// has room. 8 and 64 threads that replace 8 blocks each, of 140 KB to 1 MB, hold 1.86 and 1.34 times what is
// live, and 1.46 and 1.31 without regions. Before a request is refused, by trim(), and when they were not used
// for a period of `decay`, regions are dissolved: what is free in them serves every request then. A pool with
// a limit below 128 MiB, or a `decay` of 0, has none.
//
// Its tables take 16 bytes of host memory for a small block and 32 for a large one (Stats::table_bytes), grow
// with use and shrink with it; 16 KiB for each region, also while blocks of one that was dissolved live.
// Together with them the pool holds no more than it ever needed at one time, and `target_ratio` beyond that:
// when tables grow, cached memory is returned for them, unless `decay` is kNever.
//
// Streams. A block belongs to the stream of its request. A freed block can be reused at once on that stream,
// and on another stream when the work that was submitted to the first before the free is known to be done, or
// when the other stream was told to wait for it. Further streams that use the block are named with `used_on`.
//
// Decay. Idle memory is returned to the device. The minimum that was cached during a period of `decay` was idle
// for all of it, and is decommitted in the course of the next period, whole huge pages first. Frees that reach
// the pool itself do that, a few pages each, more of them when they are behind, and in a period no more than
// could be committed again in a hundredth of it (BackendProperties::commit_us_per_mib: at 100 µs for a MiB and
// 10 s, 1000 MiB), so that a program that alternates between high and low use does not pay for it.
// Consequences:
//
// - A program that keeps working, at a lower level, is back at that level after about two periods.
// - A program that goes idle returns nothing, unless it asked for a thread (`background_trim`). Let it call
//   trim_idle() periodically; the second call, a period after the first, finds everything idle. Or call
//   release_cached() once, which does not wait.
// - The same holds for a program whose small blocks all come from its thread caches, because those do not reach
//   the pool.
// - Memory from reserve() stays committed until trim or release_cached.
namespace berth {

struct PoolOptions {
  static constexpr std::chrono::milliseconds kNever = std::chrono::milliseconds::max();

  std::size_t limit_bytes = SIZE_MAX;  // the most memory it takes from the device

  // How long memory must have been idle before it is returned to the device. Ten seconds are long compared with
  // a training step or a served request, so that memory that they free and need again stays, and short compared
  // with the time for which another process waits for memory. 0: at once, with every free that leaves whole
  // pages. kNever: only on request (trim, release_cached).
  std::chrono::milliseconds decay = std::chrono::seconds(10);

  // How much memory may be committed for each byte that was live at the peak, before pages are moved from free
  // extents instead of committed anew. A ratio near 1 holds less memory and moves more pages; a move costs tens
  // of microseconds for each piece on a GPU. At least 1.
  double target_ratio = 1.01;

  // The longest blocks that come from slabs, 16 to 128 KiB. The memory of a slab does not move: with 128 KiB,
  // random sizes of 64 to 128 KiB, of which a random half is freed and replaced by other sizes eight times, hold
  // 1.47 times their peak; a pair of calls takes 22 ns, and 116 ns where a thread replaces one of eight blocks.
  // With 60 KiB such blocks are large ones: 1.09 times, and 69 and 303 ns.
  std::size_t small_bytes = std::size_t{128} << 10;

  // How often threads must have waited for one another, since the last trim or period of `decay`, before blocks
  // of 128 KiB to 1 MiB that have no stream come from regions (see above). Two threads that meet by chance do
  // not wait so often. 0: always, for a program that knows that it has many threads. kNoRegions: never.
  static constexpr std::uint32_t kNoRegions = UINT32_MAX;
  std::uint32_t region_waits = 16;

  // Before a request is refused, the calling thread waits for work of streams that would free memory: the oldest free
  // first, and no more of them than are needed. On a GPU it also waits for its own stream, where less than an eighth of
  // the peak is left and a free piece had better be cut before the block pins it. False, for a thread that must not
  // block: it is refused at once.
  bool wait_for_streams = true;

  // A thread of this pool's own calls `trim_idle` once in each period of `decay`, so that a program that goes quiet
  // returns what it does not use, and other processes get it. Not with a decay of 0 or kNever, which need none. In a
  // forked child, only pools made there have one.
  bool background_trim = false;
};

// As text for make_allocator and BERTH_<KIND>_ALLOCATOR: "pool", "pool:8GiB", "pool:limit=8GiB,decay=5s",
// "pool:decay=never,ratio=1.05,small=60KiB,waits=0", "pool:wait_for_streams=no,background_trim=yes". Throws DeviceError
// when the device does not exist, or there is no thread for `background_trim`; ArgumentError when `decay` is negative,
// `target_ratio` less than 1, or `small_bytes` not in its range, and for `background_trim` with nothing to trim.
BERTH_EXPORT std::shared_ptr<Allocator> pool(Device device, const PoolOptions& options = {});

// A private pool over the memory of another pool: for the capture of a graph, or a tenant. It has its own
// address range and its own blocks; no other request ever gets memory that was freed to it. It has pages in
// common with its parent: when it needs some, whole free pages of the parent's cache are moved to it before the
// device is asked for new ones, and the parent's limit covers both. Freed memory stays with the private pool
// until it is trimmed or destroyed; then its pages return to the parent's cache.
//
//     auto capture = private_pool(gpu);
//     ... capture the graph, allocating from `capture`; keep it as long as the graph ...
struct PrivatePoolOptions {
  std::size_t limit_bytes = SIZE_MAX;  // the most it commits, within its parent's limit

  // True: its addresses stay backed by memory, also those of freed blocks, until trim, release_cached,
  // deallocate_now or destruction, because a captured graph writes to the addresses that it was captured with.
  // False, for a tenant: pages move between its own free extents as in any pool, decay, and move to its parent,
  // or to other private pools of that parent, when those are about to refuse a request.
  bool fixed_pages = true;
  std::chrono::milliseconds decay = PoolOptions::kNever;  // as PoolOptions::decay; only without fixed_pages
};

// The parent is kept alive. Throws ArgumentError when it is not a pool (an adaptor is none: wrap the private
// pool in it instead) or is itself private, and for options that contradict each other.
BERTH_EXPORT std::shared_ptr<Allocator> private_pool(const std::shared_ptr<Allocator>& parent, const PrivatePoolOptions& options = {});

}  // namespace berth
