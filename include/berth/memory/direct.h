// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "berth/export.h"
#include "berth/memory/allocator.h"

// The strategy without a cache: every block comes straight from the device and goes straight back. On hosts that is the C library's
// heap; elsewhere each block has pages of its own. It remembers which blocks live, so that a wrong free is found and harmless.
//
// A freed block whose streams (that of its request, and those of `used_on`) are not done with it goes back when they are: that is looked
// at with every later request for a stream, free of such a block, and trim. Until then it counts as cached.
namespace berth {

// Throws DeviceError when the device is not there.
BERTH_EXPORT std::shared_ptr<Allocator> direct(Device device);

}  // namespace berth
