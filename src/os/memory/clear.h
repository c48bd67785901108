// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// Makes memory zero without touching pages that the system has yet to fill: those read as zero, and stay absent
// until somebody writes them. Only what the kernel says is absent is left alone; where it does not say, all bytes
// are written. REQUIRES: nobody else writes the bytes meanwhile. Any thread.
namespace berth::internal::os {

// For private anonymous memory. The kernel is asked through /proc/self/pagemap.
void clear(void* address, std::size_t bytes) noexcept;

// For a mapping of a file in memory (os/file/shared_file.h) from `offset` on. The kernel is asked for its holes;
// pages that are allocated and were never written count as such.
void clear_mapped(void* address, std::size_t bytes, int descriptor, std::uint64_t offset) noexcept;

}  // namespace berth::internal::os
