// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "berth/device/device.h"
#include "berth/export.h"

// The most memory that this process commits through berth, over all allocators together.
//
//     // A container of 16 GiB, less what the rest of the program needs.
//     set_process_limit("cpu", 12_GiB);          // or BERTH_LIMIT=12GiB
//     set_process_limit("cuda:0", 20_GiB);       // or BERTH_CUDA_LIMIT=20GiB
//
// The limit counts what the strategies have committed: live blocks, caches and slack, as committed_bytes of
// their statistics (except for `direct`, whose statistics count requested bytes: where a block has pages of its
// own, whole pages count). The devices that are host memory (cpu, pinned, shared) have one limit together,
// because they use one memory; every other device has its own. berth's own tables, the pages that `check`
// allocates for guarded blocks, and external memory do not count.
//
// The limit is hard: memory is counted before it is committed, so that concurrent requests cannot exceed it
// together. A request that would exceed it still succeeds if other allocators of this memory have enough
// cached: that is released first. Otherwise it is refused with an OutOfMemory that names the limit, and who
// holds what. reserve and try_grow take nothing from other allocators.
//
// Any thread, at any time.
namespace berth {

struct ProcessMemory {
  std::size_t limit_bytes = SIZE_MAX;  // SIZE_MAX: none
  std::size_t committed_bytes = 0;     // by all allocators
  std::size_t peak_committed_bytes = 0;
};

// Sets the limit of the memory that a device belongs to; SIZE_MAX removes it. When more is already committed,
// caches are released, blocks stay, and nothing new is committed until there is room. Throws DeviceError when
// the device does not exist.
BERTH_EXPORT void set_process_limit(Device device, std::size_t limit_bytes);

BERTH_EXPORT ProcessMemory process_memory(Device device);

}  // namespace berth
