// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "berth/base/units.h"
#include "berth/export.h"
#include "berth/memory/allocator.h"

// The strategy of buckets. A size is rounded up to a power of two, beyond a cutoff to a multiple of the cutoff, and a freed block is kept
// for the next request of the same rounded size. Simple to foresee, and good where sizes vary a little around few values; rounding
// costs up to half of each block, which `pool` does not. Blocks are never split, merged or moved.
//
//     auto gpu = rounded("cuda:0", {.least_bytes = 512, .cutoff_bytes = 32_MiB});
//     Block b = gpu->allocate({.bytes = 600'000});      // takes 1 MiB
//     gpu->deallocate(b);
//     b = gpu->allocate({.bytes = 700'000});            // the same 1 MiB
//
// Alignment. Blocks that ask for more than the device's alignment have buckets of their own, by alignment.
//
// Streams. A block belongs to the stream of its request. Once freed it may be handed out again on that stream at once, and on another
// when the work that was put into the first before the free is known to be done.
//
// What the functions of Allocator mean here: reserve(bytes) makes sure that the cache has a block for one request of that size; to
// have two, allocate and free two. trim(keep) gives whole blocks back, the largest first, until at most `keep` bytes are cached; blocks
// that a stream may still use stay. When the device is full, all that is cached goes back to it, streams are waited for if that is
// needed, and the device is asked again. In stats(), what rounding costs is in cached_bytes; where a device gives each block pages of its
// own (where the host may not touch it), whole pages are counted.
//
// Any thread. One lock, which is not held while the device works.
namespace berth {

struct RoundedOptions {
  // The smallest bucket, a power of two, at most the cutoff. 0: the least that the device gives, which is its alignment on hosts and a
  // page where each block has pages of its own (or the cutoff, if that is smaller).
  std::size_t least_bytes = 0;
  std::size_t cutoff_bytes = 16_MiB;   // powers of two up to this one, then multiples of it
  std::size_t limit_bytes = SIZE_MAX;  // the most memory it takes from the device, at least the smallest bucket
};

// As text for make_allocator and BERTH_<KIND>_ALLOCATOR: "rounded", "rounded:least=512,cutoff=32MiB,limit=8GiB".
// Throws DeviceError when the device is not there, ArgumentError when the options are not as above.
BERTH_EXPORT std::shared_ptr<Allocator> rounded(Device device, const RoundedOptions& options = {});

}  // namespace berth
