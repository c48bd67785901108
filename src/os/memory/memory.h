// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>

#include "berth/base/result.h"

// Address ranges of this process. A range is reserved (addresses, no memory), committed (readable and writable,
// backed by pages at first touch), decommitted and released. All addresses and sizes but reserve's are
// multiples of page_bytes(). Any thread.
namespace berth::internal::os {

std::size_t page_bytes() noexcept;

// The size of a transparent huge page, or 0 where madvise cannot request them.
std::size_t huge_page_bytes() noexcept;

// REQUIRES: alignment is a power of two. The range starts at a multiple of it and of the page size.
Result<void*> reserve(std::size_t bytes, std::size_t alignment) noexcept;
Status commit(void* address, std::size_t bytes) noexcept;
// While mappings are scarce (os/memory/mappings.h) the pages are returned, but the range can still be written,
// and keeps counting towards limits of what can be.
Status decommit(void* address, std::size_t bytes) noexcept;
// As decommit, but every access faults from then on, however scarce mappings are.
Status close_off(void* address, std::size_t bytes) noexcept;
Status release(void* address, std::size_t bytes) noexcept;

// Returns the pages of a committed range to the system. It stays committed, and reads as zeros.
bool discard(void* address, std::size_t bytes) noexcept;
// Whether there is a limit on all that the process could write to, touched or not: what is discarded still counts.
bool is_writing_limited() noexcept;

// The lengths of the mappings that a committed range lies in, from its start on: the first of them.
struct MappingLengths {
  std::array<std::size_t, 64> bytes = {};
  std::size_t count = 0;
};
// Whether they are so long on average that moving them costs less than fresh pages do. Moved pages stay in mappings of
// their own for good; fresh ones are one mapping.
bool pays_to_move(void* address, std::size_t bytes, MappingLengths& found) noexcept;

// Remaps the pages without copying: `to` (reserved, not committed) takes over the contents, `from` is not
// committed afterwards. What pays_to_move has found of `from` need not be asked again.
// Refused while mappings are scarce.
// REQUIRES: the ranges do not overlap. On failure both are as they were, but for device_lost; and except for
// addresses of `to` that another thread's mapping may have taken while the kernel failed: all calls refuse
// these from then on.
Status move(void* from, void* to, std::size_t bytes, const MappingLengths& found = {}) noexcept;

// A hint; it is not an error when the kernel cannot follow it.
void prefer_huge_pages(void* address, std::size_t bytes) noexcept;

// Requests that the pages of the range come from one NUMA node.
Status bind_to_node(void* address, std::size_t bytes, int node) noexcept;

}  // namespace berth::internal::os
