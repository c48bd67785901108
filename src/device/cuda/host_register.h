// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "berth/base/result.h"

// Page-locking of host memory for transfers to CUDA devices; there in every build.
namespace berth::internal::device::cuda {

// Whether there is a device to lock it for. The first call opens the first device.
bool can_register_host() noexcept;

// Locks pages that are there already, for every device; and lets go of exactly what was locked by one call.
Status register_host(void* address, std::size_t bytes) noexcept;
Status unregister_host(void* address) noexcept;

}  // namespace berth::internal::device::cuda
