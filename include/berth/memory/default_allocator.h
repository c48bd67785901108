// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "berth/export.h"
#include "berth/memory/allocator.h"

// The default allocator of a device, used when a call names no allocator. It is created on first use, once per
// device. Its strategy is chosen with BERTH_<KIND>_ALLOCATOR (BERTH_CPU_ALLOCATOR=direct,
// BERTH_SIM_ALLOCATOR=arena:64MiB) or replaced in code:
//
//     set_default_allocator("cpu", limit(direct("cpu"), 2_GiB));
//
// With BERTH_CHECK=1 every default allocator that berth creates, but not one that is set, is wrapped in check
// (memory/check.h), and the blocks in quarantine are checked once more when the process ends.
//
// In a forked child, where the inherited default of `shared` would allocate its parent's memory, the first use makes one
// of the child's own, as the environment says: also in place of one that the parent had set.
namespace berth {

// Throws DeviceError when the device does not exist, ArgumentError when an environment variable is malformed,
// saying what is accepted. The reference stays valid for the life of the process; its referent does not change
// when the default is replaced.
BERTH_EXPORT const std::shared_ptr<Allocator>& default_allocator(Device device);

// Any thread, at any time. Throws ArgumentError when the allocator is not for that device. The allocator it
// replaces releases its cache and stays alive, idle, until the process ends, because other threads may be using
// it.
BERTH_EXPORT void set_default_allocator(Device device, std::shared_ptr<Allocator> allocator);

// Makes an allocator from text, which is the name of a strategy and, after a colon, its options: "direct",
// "arena:64MiB". The error for a name of another system (Round, Naive, Unpooled, MXNET_GPU_MEM_POOL_TYPE=Round) says which
// of these it is.
BERTH_EXPORT std::shared_ptr<Allocator> make_allocator(std::string_view text, Device device);

// The names that make_allocator accepts, sorted.
BERTH_EXPORT std::vector<std::string> allocator_names();

}  // namespace berth
