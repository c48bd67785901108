// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "berth/export.h"
#include "berth/memory/allocator.h"

// The strategy that reuses a freed block only for a request of the same size, rounded to the device's
// alignment. It has next to no internal fragmentation, and suits programs that request the same sizes in every
// step, such as a training loop; with sizes that keep changing, its cache grows until the device is full, and
// is then released.
//
//     auto gpu = exact("cuda:0");
//     Block b = gpu->allocate({.bytes = 1000});
//     gpu->deallocate(b);
//     b = gpu->allocate({.bytes = 1001});               // the same block: both are 1024 bytes to this device
//
// In everything else it behaves as `rounded` (memory/rounded.h): alignment, streams, reserve, trim, a full
// device, stats, threads.
namespace berth {

struct ExactOptions {
  std::size_t granularity_bytes = 0;   // a power of two that sizes are rounded up to; 0: the device's alignment
  std::size_t limit_bytes = SIZE_MAX;  // the most memory it takes from the device, at least the granularity
};

// As text for make_allocator and BERTH_<KIND>_ALLOCATOR: "exact", "exact:granularity=4KiB,limit=8GiB".
// Throws DeviceError when the device does not exist, ArgumentError when the options are not as above.
BERTH_EXPORT std::shared_ptr<Allocator> exact(Device device, const ExactOptions& options = {});

}  // namespace berth
