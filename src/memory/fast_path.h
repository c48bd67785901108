// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "berth/memory/block.h"
#include "memory/cache/thread_cache.h"

// The fast path: a small request is served from the cache that the calling thread used last, and a small block
// is freed into it, without a lock, a virtual call or a stack frame. The public face of every allocator tries
// it first. It does not depend on a strategy: one that has thread caches (the pool) installs the calling
// thread's as its front cache (CacheFront), under its own id, which no other allocator has.
namespace berth::internal::memory::fast_path {

// Whether the thread's front cache serves this allocator and stream, with the default alignment. Bitwise
// operators instead of `||`, so that there is one branch for all conditions.
inline bool serves(const CacheFront& front, std::uint64_t allocator_id, StreamRef stream, std::size_t alignment) noexcept {
  return ((front.allocator ^ allocator_id) | (front.stream_bits() ^ reinterpret_cast<std::uintptr_t>(stream.state())) | alignment) == 0;
}

// Takes a block from the thread's front cache. A null block means that the cache has none, and nothing has
// changed. An empty `tag` is set to the thread's current tag.
inline ThreadCache::Taken take(const CacheFront& front, std::uint64_t allocator_id, std::size_t bytes, std::size_t alignment,
                               StreamRef stream, Tag& tag) noexcept {
  if (!serves(front, allocator_id, stream, alignment)) [[unlikely]]
    return {};
  if (!tag) [[likely]]
    tag = t_current_tag;
  return front.cache->take(bytes, BlockEntry::make_label(allocator_id, tag));
}

// The same block as the value that the caller receives.
inline Block block_of(const ThreadCache& cache, const ThreadCache::Taken& taken, std::size_t bytes, std::size_t alignment, Device device,
                      Tag tag, std::uint64_t allocator_id) noexcept {
  return {.data = taken.data,
          .bytes = bytes,
          .alignment = alignment,
          .device = device,
          .tag = tag,
          .stream_id = cache.stream_id,
          .serial = taken.serial,
          .allocator_id = allocator_id,
          .cookie = taken.cookie};
}

// False: the block is not from the thread's front cache, or does not match its entry; nothing has changed.
inline bool free(std::uint64_t allocator_id, const Block& block) noexcept {
  const CacheFront& front = t_front;
  return ((front.allocator ^ allocator_id) | (block.allocator_id ^ allocator_id)) == 0 && front.cache->put(block, allocator_id);
}

}  // namespace berth::internal::memory::fast_path
