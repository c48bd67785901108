// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "berth/device/device.h"
#include "berth/export.h"

// The most memory that this process takes through berth, over all allocators together.
//
//     set_process_limit("cpu", 12_GiB);          // or BERTH_LIMIT=12GiB: a container of 16 GiB, less what the rest of the program needs
//     set_process_limit("cuda:0", 20_GiB);       // or BERTH_CUDA_LIMIT=20GiB
//
// What counts is what the strategies have taken from the device: live blocks, caches and slack, as committed_bytes of their statistics
// (but for `direct`, whose statistics know requested bytes: where a block has pages of its own, whole pages count). The devices that are host
// memory (cpu, pinned, shared) have one limit together, as they share one memory; every other device has its own. berth's own tables, the
// pages of their own that `check` puts guarded blocks on, and memory that came from outside, do not count.
//
// The limit is hard: memory is counted before the device is asked for it, so that no threads can pass it together. A request that
// would is served all the same if that takes only what other allocators of this memory have cached: it goes back first. Else it is
// refused with an OutOfMemory that names the limit, and who holds what. reserve and try_grow take nothing from other allocators.
//
// Any thread, at any time.
namespace berth {

struct ProcessMemory {
  std::size_t limit_bytes = SIZE_MAX;  // SIZE_MAX: none
  std::size_t committed_bytes = 0;     // by all allocators
  std::size_t peak_committed_bytes = 0;
};

// Sets the limit of the memory that a device stands for; SIZE_MAX takes it away. When more is taken already, caches go back, blocks
// stay, and nothing new is taken until there is room. Throws DeviceError when the device is not there.
BERTH_EXPORT void set_process_limit(Device device, std::size_t limit_bytes);

BERTH_EXPORT ProcessMemory process_memory(Device device);

}  // namespace berth
