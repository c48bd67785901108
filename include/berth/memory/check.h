// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "berth/export.h"
#include "berth/memory/allocator.h"

// The adaptor that looks for mistakes in the use of memory, and reports each as misuse (record/misuse.h) with the call sites it knows:
// where the block was allocated, where it was freed first, and where it is freed now.
//
//     auto a = check(pool("cpu"), {.guard_every = 16});
//     Block b = a->allocate({.bytes = 100, .site = Site::here()});
//     a->deallocate(b);
//     a->deallocate(b);      // double_free, with all three sites
//
// BERTH_CHECK=1 puts it around every default allocator. What it finds:
//
// - overflow: each block is followed by a canary, at least `canary_bytes` long; it is looked at when the block is freed.
// - use_after_free: a freed block is filled with a pattern and kept in quarantine, first in, first out. The pattern is looked at when the
//   block leaves: when the quarantine is full, when upstream has no memory left, at trim and release_cached, and when the allocator is
//   destroyed. (Not when the memory is used again: a pool moves pages under blocks that are free.) A block freed with deallocate_now, or
//   larger than the quarantine, does not stay there.
// - double_free, foreign_free, size_mismatch, as everywhere, here with sites: those of every block that lives or is in quarantine, and of
//   at least the last 4,096 that have left it.
// - reentrancy: a request or a free that comes while the same thread is inside this allocator, as from a signal handler. That is not
//   supported. Here it is refused, without a deadlock: `busy` for a request; what was to be freed lives on.
//
// Guard pages. On `cpu`, each `guard_every`-th block is put on pages of its own, as far to the right as its alignment allows, with a page
// behind it that nobody may touch. The pages of a freed one may not be touched either while it is in quarantine: both mistakes fault
// where they happen. Such a block takes its memory twice, because upstream's block is kept, so that limits below still count it. When
// the system gives no more mappings, or 8,192 blocks are guarded, further ones are unguarded, and counted.
//
// A berth built with the address sanitizer needs no adaptor for that: `pool`, `rounded` and `exact` tell it which bytes of host memory are
// cached, and which follow a block as slack, and it stops the program at the first touch of one (but for what streams may be at work on).
//
// Streams. Work may still be in the stream of a block that is freed. Then nothing is written to it: the canary is looked at when the block
// leaves the quarantine and the stream is done, and a use after free is not found; a block that several streams use (`used_on`) is not looked
// at at all. A block does not grow in place, as its canary is there. Memory that the host may not touch is written and
// read through its backend, which is slow, and not at all while the device is held.
//
// What it costs: two walks of the stack and two fills for each block, and what the quarantine holds. It is for testing. Any thread may
// call anything.
namespace berth {

struct CheckOptions {
  std::size_t canary_bytes = 16;  // at most 64 KiB; 0: none
  std::size_t quarantine_bytes = std::size_t{64} << 20;
  std::size_t quarantine_blocks = 4096;
  std::size_t guard_every = 0;  // 0: none
  bool zero = false;            // every block is cleared before it is handed out, so that nobody sees what another left there
};

class BERTH_EXPORT CheckAdaptor : public Allocator {
 public:
  using Allocator::Allocator;

  virtual std::uint64_t guarded() const = 0;    // blocks that were put on pages of their own
  virtual std::uint64_t unguarded() const = 0;  // blocks that should have been
};

// Throws ArgumentError when the canary is too long.
BERTH_EXPORT std::shared_ptr<CheckAdaptor> check(std::shared_ptr<Allocator> upstream, const CheckOptions& options = {});

}  // namespace berth
