// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "berth/base/units.h"
#include "berth/export.h"
#include "berth/memory/allocator.h"

// The bucket strategy. A size is rounded up to a power of two, above a cutoff to a multiple of the cutoff, and
// a freed block is kept for the next request of the same rounded size. It is predictable, and good where sizes
// vary a little around few values; rounding costs up to half of each block, which `pool` avoids. Blocks are
// never split, coalesced or moved.
//
//     auto gpu = rounded("cuda:0", {.least_bytes = 512, .cutoff_bytes = 32_MiB});
//     Block b = gpu->allocate({.bytes = 600'000});      // takes 1 MiB
//     gpu->deallocate(b);
//     b = gpu->allocate({.bytes = 700'000});            // the same 1 MiB
//
// Alignment. Blocks with more than the device's alignment have buckets of their own, by alignment.
//
// Streams. A block belongs to the stream of its request. A freed block can be reused at once on that stream,
// and on another stream when the work that was submitted to the first before the free is known to be done.
//
// What the functions of Allocator mean here: reserve(bytes) makes sure that the cache has a block for one
// request of that size; to have two, allocate and free two. trim(keep) releases whole blocks, largest first,
// until at most `keep` bytes are cached; blocks that a stream may still use stay. When the device is full, the
// whole cache is released to it, after waiting for streams if necessary, and the request to the device is
// retried. In stats(), the cost of rounding is in cached_bytes; where a device gives each block pages of its
// own (where the host cannot access it), whole pages are counted.
//
// Any thread. One lock, which is not held during calls to the device.
namespace berth {

struct RoundedOptions {
  // The smallest bucket, a power of two, at most the cutoff. 0: the least that the device allocates, which is
  // its alignment on hosts and a page where each block has pages of its own (or the cutoff, if that is
  // smaller).
  std::size_t least_bytes = 0;
  std::size_t cutoff_bytes = 16_MiB;   // powers of two up to this one, then multiples of it
  std::size_t limit_bytes = SIZE_MAX;  // the most memory it takes from the device, at least the smallest bucket
};

// As text for make_allocator and BERTH_<KIND>_ALLOCATOR: "rounded",
// "rounded:least=512,cutoff=32MiB,limit=8GiB". Throws DeviceError when the device does not exist, ArgumentError
// when the options are not as above.
BERTH_EXPORT std::shared_ptr<Allocator> rounded(Device device, const RoundedOptions& options = {});

}  // namespace berth
