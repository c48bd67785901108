// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

// The host memory that berth has page-locked, by registration: the driver rejects a copy that crosses from one
// registration into the next, though the memory is contiguous. Any thread.
namespace berth::internal::device::cuda {

// False: the heap is exhausted. REQUIRES: the range overlaps no other noted range.
bool note_host_lock(const void* address, std::size_t bytes) noexcept;
void forget_host_lock(const void* address) noexcept;

// How many of these bytes the driver can copy in one call: up to the next border of a registration. All of them
// when there is none, as for device memory.
std::size_t host_run(const void* address, std::size_t bytes) noexcept;

}  // namespace berth::internal::device::cuda
