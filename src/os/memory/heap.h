// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "berth/base/result.h"

// The C library's heap, with any alignment. Any thread.
namespace berth::internal::os {

// Returns nullptr when there is no memory. REQUIRES: bytes > 0, alignment is a power of two.
void* heap_allocate(std::size_t bytes, std::size_t alignment) noexcept;

// Why heap_allocate has returned nullptr, by what is known now.
Failure heap_refusal() noexcept;

// REQUIRES: `address` came from heap_allocate with the same size and alignment.
void heap_free(void* address, std::size_t bytes, std::size_t alignment) noexcept;

// From now on what is freed stays with the process, for what it allocates next: fresh pages cost more than most uses of
// a list make of them. For a program that allocates and frees long lists, and ends soon. Only with glibc.
void keep_freed_memory() noexcept;

}  // namespace berth::internal::os
