// SPDX-License-Identifier: Apache-2.0
#include "os/memory/heap.h"

#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdlib>

#include "berth/base/checked.h"
#include "os/inject.h"

namespace berth::internal::os {

namespace {

// glibc's aligned_alloc bypasses its per-thread cache and costs five times a malloc, so small blocks are carved
// from a slightly larger malloc. The word before the block holds malloc's address; malloc aligns to 16, so
// there is always room for it.
//
//     malloc's block:  | gap, 8 to alignment - 8 | start | aligned block ...
constexpr std::size_t kSmallBytes = 1024;
constexpr std::size_t kSmallAlignment = 64;
constexpr std::size_t kMallocAlignment = alignof(std::max_align_t);

constexpr bool is_small(std::size_t bytes, std::size_t alignment) noexcept {
  return bytes <= kSmallBytes && alignment <= kSmallAlignment && alignment > kMallocAlignment;
}

}  // namespace

void* heap_allocate(std::size_t bytes, std::size_t alignment) noexcept {
  if (must_fail("malloc")) return nullptr;
  // max: a preloaded malloc may align smaller blocks less.
  if (alignment <= kMallocAlignment) return std::malloc(std::max(bytes, alignment));
  if (is_small(bytes, alignment)) {
    void* const start = std::malloc(bytes + alignment);
    if (start == nullptr) return nullptr;
    const std::uintptr_t address = align_down(reinterpret_cast<std::uintptr_t>(start) + alignment, alignment);
    void** const block = reinterpret_cast<void**>(address);
    block[-1] = start;
    return block;
  }
  const auto rounded = try_align_up(bytes, alignment);  // aligned_alloc requires a multiple
  return rounded ? std::aligned_alloc(alignment, *rounded) : nullptr;
}

Failure heap_refusal() noexcept {
  const auto is_limited = [](__rlimit_resource_t resource) {
    rlimit limit{};
    return getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  };
  const bool limited = is_limited(RLIMIT_DATA) || is_limited(RLIMIT_AS);
  return {ErrorCode::out_of_memory, ENOMEM,
          limited ? "the C library's heap is exhausted, and the process's memory is limited: see ulimit -d and -v"
                  : "the C library's heap is exhausted"};
}

void heap_free(void* address, std::size_t bytes, std::size_t alignment) noexcept {
  std::free(is_small(bytes, alignment) ? static_cast<void**>(address)[-1] : address);
}

void keep_freed_memory() noexcept {
#ifdef __GLIBC__
  mallopt(M_MMAP_MAX, 0);  // a mapping of its own would go with the block
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
#endif
}

}  // namespace berth::internal::os
