// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

// Which host memory berth has page-locked, and where one lock ends and the next begins: the driver refuses a copy that goes from one into the
// next, though the memory lies together. Any thread may call anything.
namespace berth::internal::device::cuda {

// False: there is no heap for the note. REQUIRES: the range meets no other that is noted.
bool note_host_lock(const void* address, std::size_t bytes) noexcept;
void forget_host_lock(const void* address) noexcept;

// How many of these bytes the driver copies at once: up to the next border of a lock. All of them when there is none, as on a device.
std::size_t host_run(const void* address, std::size_t bytes) noexcept;

}  // namespace berth::internal::device::cuda
