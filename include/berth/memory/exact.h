// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "berth/export.h"
#include "berth/memory/allocator.h"

// The strategy that reuses a freed block only for a request of the same size, rounded to the device's alignment. It wastes next to nothing
// inside blocks, and suits programs that ask for the same sizes in every step, such as a training loop; with sizes that keep changing
// its cache grows until the device is full, and is then given back.
//
//     auto gpu = exact("cuda:0");
//     Block b = gpu->allocate({.bytes = 1000});
//     gpu->deallocate(b);
//     b = gpu->allocate({.bytes = 1001});               // the same block: both are 1024 bytes to this device
//
// In all else it is as `rounded` (memory/rounded.h): alignment, streams, reserve, trim, a full device, stats, threads.
namespace berth {

struct ExactOptions {
  std::size_t granularity_bytes = 0;   // sizes are rounded up to a multiple of this power of two; 0: the device's alignment
  std::size_t limit_bytes = SIZE_MAX;  // the most memory it takes from the device, at least the granularity
};

// As text for make_allocator and BERTH_<KIND>_ALLOCATOR: "exact", "exact:granularity=4KiB,limit=8GiB".
// Throws DeviceError when the device is not there, ArgumentError when the options are not as above.
BERTH_EXPORT std::shared_ptr<Allocator> exact(Device device, const ExactOptions& options = {});

}  // namespace berth
