// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
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
// Streams. A block belongs to the stream of its request. Once freed it may be handed out again on that stream at once, and on another
// when the work that was put into the first before the free is known to be done, or that other stream was told to wait for it. Streams
// beside its own that use the block are named with `used_on`.
namespace berth {

struct PoolOptions {
  std::size_t limit_bytes = SIZE_MAX;  // the most memory it takes from the device
};

// Throws DeviceError when the device is not there.
BERTH_EXPORT std::shared_ptr<Allocator> pool(Device device, const PoolOptions& options = {});

}  // namespace berth
