// SPDX-License-Identifier: Apache-2.0
#include "berth/base/checked.h"
#include "memory/pool/pool.h"

// Blocks that become longer where they are: a small one within its size class, a large one into what follows it.
namespace berth {

using namespace internal;
using namespace internal::memory;

bool Pool::grow(Block& block, std::size_t bytes) noexcept {
  BlockEntry* const entry = entries_.range().find(block.cookie);
  if (entry == nullptr || is_inherited()) return false;
  return entry->is_large() ? grow_large(entry, block, bytes) : grow_small(entry, block, bytes);
}

// Within its class. What streams beside its own use stays as it is: they are noted under the old serial.
bool Pool::may_grow(const BlockEntry* entry, const Block& block, std::size_t bytes) const noexcept {
  return !entry->has_extra_uses() && judge(entry, block) == BlockVerdict::ok && bytes <= classes_[entry->size_class()].bytes;
}

bool Pool::grow_small(BlockEntry* entry, Block& block, std::size_t bytes) noexcept {
  const std::uint32_t owner = entry->owner();
  if (ThreadCache* const own = owner == 0 ? nullptr : ThreadCaches::find_number(id(), owner); own != nullptr && enter(*own)) {
    const bool grown = grow_in_cache(*own, entry, block, bytes);
    own->gate.unlock();
    return grown;
  }
  const os::Lock lock(mutex_);
  const AllShut shut(*this);
  if (const std::uint32_t number = entry->owner(); number != 0)
    return grow_in_cache(*caches_[number].load(std::memory_order_relaxed), entry, block, bytes);
  if (!may_grow(entry, block, bytes)) return false;
  count_free(block.bytes);
  count_allocation(bytes);
  entry->label.store(BlockEntry::make_label(block.allocator_id, entry->tag(), bytes));
  if (poisons()) unpoison(block.data, bytes);
  entry->serial.store(++serial_);
  block.serial = serial_;
  block.bytes = bytes;
  return true;
}

// REQUIRES: the caller is inside the cache's gate, or has shut it.
bool Pool::grow_in_cache(ThreadCache& cache, BlockEntry* entry, Block& block, std::size_t bytes) noexcept {
  if (entry->owner() != cache.number || !may_grow(entry, block, bytes)) return false;
  cache.count_free(block.bytes);
  block.serial = cache.make_live(entry, bytes, BlockEntry::make_label(block.allocator_id, entry->tag(), 0));
  block.bytes = bytes;
  return true;
}

bool Pool::grow_large(BlockEntry* entry, Block& block, std::size_t bytes) noexcept {
  const auto rounded = try_align_up(bytes, Space::kGrain);
  ThreadCache* const own = t_front.allocator == id() ? t_front.cache : nullptr;
  const os::Lock lock(mutex_);
  if (own != nullptr) {
    count_bytes(*own);
    if (own->has_kept()) end_keeping(*own);
  }
  recall(entry);
  if (!rounded || judge_large(entry, block) != BlockVerdict::ok) return false;
  PoolExtent* const extent = space_.extent(entry->extent());
  // Another stream may have the number of one that is gone. What that has freed is not this block's, which was the old one's.
  const std::uint32_t stream = streams_.find(block.stream_id) == extent->stream ? extent->stream : 0;
  // The new serial comes first: the space may let go of the lock, and until it is back no other thread's free may find the block. Nor may
  // one by its address alone: meanwhile it is nobody's.
  const std::uint64_t serial = ++serial_;
  const std::uint64_t label = entry->label.load();
  entry->serial.store(serial);
  entry->label.store(label & BlockEntry::kTagMask);
  const Space::Effort effort = holds_.any() ? Space::Effort::cached_only : Space::Effort::usual;
  const bool grown = *rounded <= extent->bytes || space_.grow(extent, *rounded, stream, effort);
  entry->label.store(label);
  if (!grown) {
    entry->serial.store(block.serial);
    return false;
  }
  extent->requested = bytes;
  if (poisons()) unpoison(block.data, bytes);
  count_free(block.bytes);
  count_allocation(bytes);
  block.serial = serial;
  block.bytes = bytes;
  return true;
}

}  // namespace berth
