// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "berth/export.h"
#include "berth/memory/allocator.h"

// The strategy without a cache: every block is allocated from the device and freed to it directly. On hosts
// that is the C library's heap; elsewhere each block has pages of its own. It keeps a table of live blocks, so
// that an invalid free is detected and harmless.
//
// A freed block with pending work in its streams (that of its request, and those of `used_on`) is released when
// they are done: every later request for a stream, free of such a block, and trim looks for that. Until then it
// counts as cached.
namespace berth {

// Throws DeviceError when the device does not exist.
BERTH_EXPORT std::shared_ptr<Allocator> direct(Device device);

}  // namespace berth
