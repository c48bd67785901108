// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "berth/export.h"
#include "berth/memory/allocator.h"

// The strategy without a cache: every block comes straight from the device and goes straight back. On hosts that is the C library's
// heap; elsewhere each block has pages of its own. It remembers which blocks live, so that a wrong free is found and harmless.
namespace berth {

// Throws DeviceError when the device is not there.
BERTH_EXPORT std::shared_ptr<Allocator> direct(Device device);

}  // namespace berth
