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

// What is the same for all blocks of an allocator.
struct Source {
  std::uint64_t id;
  Device device;
  std::size_t usual_alignment;
};

// Calls `found(block)` and returns what it returns; or returns `otherwise()` when the cache has no such block, and nothing has changed.
template <class Found, class Otherwise>
inline Block allocate(const Source& source, std::size_t bytes, std::size_t alignment, StreamRef stream, Tag tag, const Found& found,
                      const Otherwise& otherwise) {
  const CacheFront& front = t_front;
  if (serves(front, source.id, stream, alignment)) [[likely]] {
    Tag known = tag;
    if (!known) [[likely]]
      known = t_current_tag;
    const ThreadCache::Taken taken = front.cache->take(bytes, BlockEntry::make_label(source.id, known, 0));
    if (taken.entry != nullptr) [[likely]] {
      return found(Block{.data = front.cache->address(taken.entry),
                         .bytes = bytes,
                         .alignment = source.usual_alignment,
                         .device = source.device,
                         .tag = known,
                         .stream_id = front.cache->stream_id,
                         .serial = taken.serial,
                         .allocator_id = source.id,
                         .cookie = EntryRange::cookie(taken.entry)});
    }
  }
  return otherwise();
}

// False: the block is not one of the thread's front cache, or is not what it says; nothing has changed.
inline bool free(std::uint64_t allocator_id, const Block& block) noexcept {
  const CacheFront& front = t_front;
  return ((front.allocator ^ allocator_id) | (block.allocator_id ^ allocator_id)) == 0 && front.cache->put(block);
}

}  // namespace berth::internal::memory::fast_path
