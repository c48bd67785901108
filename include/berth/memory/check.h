// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "berth/export.h"
#include "berth/memory/allocator.h"

// The adaptor that detects memory errors, and reports each as misuse (record/misuse.h) with the call sites it
// knows: where the block was allocated, where it was freed first, and where it is freed now.
//
//     auto a = check(pool("cpu"), {.guard_every = 16});
//     Block b = a->allocate({.bytes = 100, .site = Site::here()});
//     a->deallocate(b);
//     a->deallocate(b);      // double_free, with all three sites
//
// BERTH_CHECK=1 wraps every default allocator in it. What it finds:
//
// - overflow: each block is followed by a canary of at least `canary_bytes`, which is checked when the block is
//   freed.
// - use_after_free: a freed block is filled with poison and kept in a FIFO quarantine. The poison is checked
//   when the block leaves it: when the quarantine is full, when upstream runs out of memory, at trim and
//   release_cached, and when the allocator is destroyed. (It is not checked when the memory is reused, because
//   a pool moves pages under free blocks.) A block that is freed with deallocate_now, or is larger than the
//   quarantine, does not stay there.
// - double_free, foreign_free and size_mismatch, as everywhere, but with call sites: those of every block that
//   is live or in quarantine, and of at least the last 4,096 that have left it.
// - reentrancy: a request or a free that arrives while the same thread is inside this allocator, as from a
//   signal handler. That is not supported. Here it is refused, without a deadlock: a request gets `busy`; a
//   block that was to be freed stays live.
//
// Guard pages. On `cpu`, each `guard_every`-th block gets pages of its own, right-aligned as far as its
// alignment allows, with an inaccessible page behind it. While a freed one is in quarantine, its pages are
// inaccessible too: both errors fault where they happen. Such a block uses its memory twice, because the block
// from upstream is kept so that limits below still count it. When the system has no more mappings, or 8,192
// blocks are guarded, further blocks are unguarded, and counted.
//
// A berth built with the address sanitizer does that without an adaptor: `pool`, `rounded` and `exact` tell it
// which bytes of host memory are cached, and which are slack behind a block, and it stops the program at the
// first access (except for memory that pending stream work may touch).
//
// Streams. When a block is freed, work on it may still be pending in its stream. Then nothing is written to it:
// the canary is checked when the block has left the quarantine and the stream is done, and a use after free is
// not found. A block that several streams use (`used_on`) is not checked at all. A block does not grow in
// place, because its canary is behind it. Memory that the host cannot access is written and read through its
// backend, which is slow, and not at all while the device is held.
//
// Cost: two stack walks and two fills for each block, and the memory in quarantine. It is for testing. Any
// thread may call anything.
namespace berth {

struct CheckOptions {
  std::size_t canary_bytes = 16;  // at most 64 KiB; 0: none
  std::size_t quarantine_bytes = std::size_t{64} << 20;
  std::size_t quarantine_blocks = 4096;
  std::size_t guard_every = 0;  // 0: none
  bool zero = false;            // clear every block before it is handed out, so that no stale contents are seen
};

class BERTH_EXPORT CheckAdaptor : public Allocator {
 public:
  using Allocator::Allocator;

  virtual std::uint64_t guarded() const = 0;    // blocks that got pages of their own
  virtual std::uint64_t unguarded() const = 0;  // blocks that should have, but did not
};

// Throws ArgumentError when the canary is too long.
BERTH_EXPORT std::shared_ptr<CheckAdaptor> check(std::shared_ptr<Allocator> upstream, const CheckOptions& options = {});

}  // namespace berth
