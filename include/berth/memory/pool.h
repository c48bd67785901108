// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "berth/export.h"
#include "berth/memory/allocator.h"

// The strategy of choice for every memory. One range of addresses per pool, with memory under as much of it as is needed. Small blocks
// come from slabs of equal blocks, through a cache of each thread that takes no lock; large ones from the first hole that fits. When no
// hole fits but enough pages are free elsewhere, the pages are moved: fragmentation does not cost memory.
//
//     auto gpu = pool("cuda:0", {.limit_bytes = 8_GiB});
//     Block b = gpu->allocate({.bytes = 1 << 20, .stream = s});
//
// How much it holds, at most. Large blocks (more than 128 KiB): whole free pages are moved before new ones are taken, so that what is held
// beyond the most that was ever live is the edges of pages that are partly live, two for a block at most. Small blocks: a slab serves one
// size class and one stream and is held while any block in it lives, and a new one is made only when those of its class have no free
// block; so each class holds at most what it held at its own peak, rounded up to slabs, and what the threads' caches keep: 2 MiB each, or a
// sixteenth of the memory in slabs between them if that is more. That is little over the peak when the mix of sizes is steady: 1.3 times
// for random sizes in our tests, 2.9 for sizes that shrink while a part of each stays. While more than half of the memory in slabs is free,
// longer free blocks serve shorter requests too, up to twice their size, so that a program made to waste (phases of one size each, a
// block of every slab kept) gets about one share of its peak for each doubling of sizes: not more than 12 times the peak where blocks
// are aligned to 512, 15 times at 64, in the test that tries. trim() does not help there, as no slab is free; allocating what outlives a
// phase from an arena, or a pool of its own, does.
//
// Streams. A block belongs to the stream of its request. Once freed it may be handed out again on that stream at once, and on another
// when the work that was put into the first before the free is known to be done, or that other stream was told to wait for it. Streams
// beside its own that use the block are named with `used_on`.
//
// Memory that is not needed goes back to the device. The least that was cached at any moment of a period of `decay` was not needed in all of
// it, and is given back in the course of the next, in whole pages. Requests and frees that come to the pool itself do that, a few pages
// each, and in a period not more than could be taken again in a hundredth of it (BackendProperties::commit_us_per_mib: at 100 µs for a MiB
// and 10 s, 1000 MiB), so that a program that swings between much and little does not pay for it. What this means:
//
// - A program that works on, at a lower level, is back at that level after two periods or so.
// - One that stops altogether gives nothing back, as nobody is there to do it: no thread runs in the background. Let it call
//   trim_idle() every so often; the second call, a period after the first, finds everything idle. Or release_cached(), once, which does not wait.
// - So it is with a program whose small blocks all come from the caches of its threads, which is what they are for.
// - What reserve() has taken stays, until trim or release_cached.
namespace berth {

struct PoolOptions {
  static constexpr std::chrono::milliseconds kNever = std::chrono::milliseconds::max();

  std::size_t limit_bytes = SIZE_MAX;  // the most memory it takes from the device

  // How long memory must have been unused to be given back. Ten seconds are long beside a step of training or a request, so that what they
  // free and need again stays, and short beside the time in which another process waits for memory. 0: at once, with
  // every free that leaves whole pages. kNever: only when asked.
  std::chrono::milliseconds decay = std::chrono::seconds(10);

  // How much memory may be committed for each byte that was live at the peak, before pages are moved from holes instead of taken anew. Nearer
  // to 1 holds less memory and moves more pages; moving costs tens of microseconds for each piece on a GPU. At least 1.
  double target_ratio = 1.01;
};

// As text for make_allocator and BERTH_<KIND>_ALLOCATOR: "pool", "pool:8GiB", "pool:limit=8GiB,decay=5s", "pool:decay=never,ratio=1.05".
// Throws DeviceError when the device is not there, ArgumentError when `decay` is less than nothing or `target_ratio` less than 1.
BERTH_EXPORT std::shared_ptr<Allocator> pool(Device device, const PoolOptions& options = {});

// A pool of its own over another's memory: for the capture of a graph, or a tenant. It has its own addresses and its own blocks; no other
// request ever gets memory that it has freed. Pages it shares: when it needs some, whole free ones of its parent's cache are moved to
// it before the device is asked for new ones, and the parent's limit covers both. What is freed stays with the private pool until it is
// trimmed, or destroyed; then its pages go back to the parent's cache.
//
//     auto capture = private_pool(gpu);
//     ... capture the graph, allocating from `capture`; keep it as long as the graph ...
struct PrivatePoolOptions {
  std::size_t limit_bytes = SIZE_MAX;  // the most it takes, within its parent's limit

  // True: memory stays under its addresses, also under those of freed blocks, until trim, release_cached, deallocate_now or the end: a captured
  // graph writes to the addresses that it was captured with. False, for a tenant: pages move between its own holes as in any pool,
  // decay, and go to its parent, or to other private pools of it, when those are about to be refused.
  bool fixed_pages = true;
  std::chrono::milliseconds decay = PoolOptions::kNever;  // as PoolOptions::decay; only without fixed_pages
};

// The parent is kept alive. Throws ArgumentError when it is no pool (an adaptor is none: put it around the private pool), or is private
// itself, and for options that contradict each other.
BERTH_EXPORT std::shared_ptr<Allocator> private_pool(const std::shared_ptr<Allocator>& parent, const PrivatePoolOptions& options = {});

}  // namespace berth
