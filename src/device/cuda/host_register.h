// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "berth/base/result.h"

// Page-locks host memory for transfers to CUDA devices; exists in every build. Any thread.
namespace berth::internal::device::cuda {

// Whether there is a CUDA device. The first call opens the first device.
bool can_register_host() noexcept;

// Locks resident pages, for every device; and unlocks exactly what one call locked.
Status register_host(void* address, std::size_t bytes) noexcept;
Status unregister_host(void* address) noexcept;

}  // namespace berth::internal::device::cuda
