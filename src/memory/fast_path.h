// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "berth/memory/block.h"
#include "memory/cache/thread_cache.h"

// The fast path: a small request is served from the cache that the calling thread used last, and a small block is freed into it, without
// a lock, a virtual call or a stack frame. The public face of every allocator tries it first. It knows no strategy: one that has thread caches
// (the pool) puts the calling thread's in front (CacheFront), under its own id, and no other allocator has that id.
namespace berth::internal::memory::fast_path {

// Whether the thread's front cache serves this allocator and stream, with the usual alignment. Without `||`: one branch for all.
inline bool serves(const CacheFront& front, std::uint64_t allocator_id, StreamRef stream, std::size_t alignment) noexcept {
  return ((front.allocator ^ allocator_id) | (front.stream_bits() ^ reinterpret_cast<std::uintptr_t>(stream.state())) | alignment) == 0;
}

// A block of the thread's front cache; no entry: the cache has none, and nothing has changed. `tag` becomes the thread's where there is none.
inline ThreadCache::Taken take(const CacheFront& front, std::uint64_t allocator_id, std::size_t bytes, std::size_t alignment,
                               StreamRef stream, Tag& tag) noexcept {
  if (!serves(front, allocator_id, stream, alignment)) [[unlikely]]
    return {};
  if (!tag) [[likely]]
    tag = t_current_tag;
  return front.cache->take(bytes, BlockEntry::make_label(allocator_id, tag, 0));
}

// The same as its user sees it.
inline Block block_of(const ThreadCache& cache, const ThreadCache::Taken& taken, std::size_t bytes, std::size_t alignment, Device device,
                      Tag tag, std::uint64_t allocator_id) noexcept {
  return {.data = cache.address(taken.entry),
          .bytes = bytes,
          .alignment = alignment,
          .device = device,
          .tag = tag,
          .stream_id = cache.stream_id,
          .serial = taken.serial,
          .allocator_id = allocator_id,
          .cookie = EntryRange::cookie(taken.entry)};
}

// False: the block is not one of the thread's front cache, or is not what it says; nothing has changed.
inline bool free(std::uint64_t allocator_id, const Block& block) noexcept {
  const CacheFront& front = t_front;
  return ((front.allocator ^ allocator_id) | (block.allocator_id ^ allocator_id)) == 0 && front.cache->put(block);
}

}  // namespace berth::internal::memory::fast_path
