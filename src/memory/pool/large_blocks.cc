// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/large_blocks.h"

#include <algorithm>

#include "berth/base/checked.h"
#include "memory/pool/escalation.h"

namespace berth::internal::memory {

namespace {

constexpr std::uint32_t kPollKeptEvery = 16;  // frees of a kept block, which drive the decay as other frees do
constexpr Failure kTooLarge{ErrorCode::out_of_memory, 0, "no address space is that large"};

// What the thread did last with large memory: how many times in a row it has freed and allocated the same size.
struct Turns {
  // With 2, blocks stayed although better addresses were free: resnet_train had 1.0144 instead of 1.0086.
  static constexpr std::uint32_t kEnough = 8;
  std::uint64_t pool = 0;
  std::size_t bytes = 0;
  std::uint32_t count = 0;

  // Counts an allocation, or a free, of that size. Returns whether the thread alternates between the two.
  bool allocate(std::uint64_t id, std::size_t size) noexcept {
    if (id != pool || size != bytes) count = 0;
    return count >= kEnough;
  }
  bool free(std::uint64_t id, std::size_t size) noexcept {
    if (id != pool || size != bytes) *this = {id, size, 0};
    count = std::min(count + 1, kEnough + 1);
    return count > kEnough;
  }
};
constinit thread_local Turns t_turns;

}  // namespace

// ---- the block that stays with its thread

bool LargeBlocks::obtain_kept(const Request& request, Block& block) const noexcept {
  const CacheFront& front = t_front;
  if (front.allocator != core_.id || front.stream != request.stream.state() || request.alignment > Space::kGrain) return false;
  const ThreadCache::Taken taken = front.cache->take_kept(request.bytes, BlockEntry::make_label(request.allocator_id, request.tag));
  if (taken.cookie == 0) return false;
  block.data = taken.data;
  block.serial = taken.serial;
  block.cookie = taken.cookie;
  return true;
}

bool LargeBlocks::free_kept(BlockRef entry, const Block& block) noexcept {
  ThreadCache* const own = caches_.front();
  if (own == nullptr || !own->put_kept(entry, block)) return false;
  if (++own->kept_polls % kPollKeptEvery == 0) {
    const os::Lock lock(core_.mutex);
    supply_.decay(Supply::Decayed::a_few_pages);
  }
  return true;
}

void LargeBlocks::take_in(ThreadCache* own, Kept kept) noexcept {
  if (own == nullptr) return;
  core_.usage.take_bytes(*own);
  if (kept == Kept::ends && own->has_kept()) caches_.end_keeping(*own);
}

// From here on the mutex alone guards the block, if it is what it claims to be.
BlockVerdict LargeBlocks::recall(BlockRef entry, const Block& block) noexcept {
  const BlockVerdict verdict = judge(entry, block);
  const std::uint32_t keeper = verdict == BlockVerdict::ok ? extent_of(entry).keeper : 0;
  if (keeper == 0) return verdict;
  const bool is_own = !core_.is_inherited() && caches_.find_own(keeper) != nullptr;
  const CacheSet::Shut shut(caches_, is_own ? 0 : keeper);
  caches_.end_keeping(caches_[keeper]);
  return judge(entry, block);  // its thread may have freed it meanwhile
}

// ---- requests

Status LargeBlocks::obtain(const Request& request, Block& block) noexcept {
  if (obtain_kept(request, block)) return {};
  // The cache will keep the block; without one the request goes on as usual.
  if (t_turns.allocate(core_.id, request.bytes)) (void)supply_.cache_for(request.stream);
  // Even the shortest large blocks begin in a grain of their own, by which they are found.
  const auto rounded = try_align_up(request.bytes, request.bytes < kSlabGrain ? kSlabGrain : Space::kGrain);
  const os::Lock lock(core_.mutex, core_.waits);
  take_in(caches_.front(), Kept::ends);
  if (!rounded) return core_.usage.refused(kTooLarge);
  const Result<PoolExtent*> extent = take(request, *rounded);
  if (!extent) return core_.usage.refused(extent.failure());
  hand_out(**extent, request, block);
  return {};
}

// An extent with an entry. With the mutex; releases it.
Result<PoolExtent*> LargeBlocks::take(const Request& request, std::size_t bytes) noexcept {
  const Result<std::uint32_t> stream = supply_.ready(request.stream);
  if (!stream) return stream.failure();
  PoolExtent* extent = nullptr;
  Status done;
  for (Escalation effort(supply_, *stream); effort.next(done);) {
    const std::size_t alignment = std::max(request.alignment, Space::kGrain);
    const Result<PoolExtent*> taken = core_.space.take(Space::Part::large, bytes, alignment, *stream, effort.level());
    done = taken ? Status() : Status(taken.failure());
    if (taken) extent = *taken;
  }
  if (!done) return done.failure();
  extent->stream = *stream;
  const BlockRef entry = core_.blocks.reserve(extent->begin, 1) ? core_.entries.take(1) : BlockRef();
  if (!entry) {
    book_.release(extent);
    return core_.entries.refusal();
  }
  entry.set_group(core_.base() + extent->begin, 0, extent->index);
  core_.blocks.set(extent->begin, 1, entry);
  extent->cookie = entry.cookie();
  return extent;
}

void LargeBlocks::hand_out(PoolExtent& extent, const Request& request, Block& block) noexcept {
  const BlockRef entry(extent.cookie);
  extent.requested = request.bytes;
  block.serial = core_.usage.next_serial();
  block.data = core_.base() + extent.begin;
  block.cookie = entry.cookie();
  entry->label.store(BlockEntry::make_label(request.allocator_id, request.tag));
  entry->state.store(block.serial);
  core_.usage.allocated(request.bytes);
  if (!core_.poisons()) return;
  unpoison(block.data, request.bytes);
  if (extent.stream == 0) poison(static_cast<std::byte*>(block.data) + request.bytes, extent.bytes - request.bytes);
}

// ---- frees and other uses

BlockVerdict LargeBlocks::judge(BlockRef entry, const Block& block) const noexcept {
  const std::uint64_t state = entry->state.load();
  if (!entry.is_large() || state == 0 || state != block.serial)
    return caches_.was_issued(block.serial) ? BlockVerdict::double_free : BlockVerdict::foreign;
  if (entry.differs_from(block.data) != 0 || !entry->is_of(block.allocator_id)) return BlockVerdict::foreign;
  return extent_of(entry).requested == block.bytes ? BlockVerdict::ok : BlockVerdict::size_mismatch;
}

BlockVerdict LargeBlocks::free(BlockRef entry, const Block& block, When when) noexcept {
  if (when == When::later && free_kept(entry, block)) return BlockVerdict::ok;
  const bool in_turn = t_turns.free(core_.id, block.bytes);
  ThreadCache* const own = caches_.front();
  const os::Lock lock(core_.mutex, core_.waits);
  take_in(own, when == When::now ? Kept::ends : Kept::stays);  // with `now`, as it may be in the same pages
  if (const BlockVerdict verdict = recall(entry, block); verdict != BlockVerdict::ok) return verdict;
  entry->state.store(0);
  core_.usage.freed(block.bytes);
  if (core_.is_inherited()) return BlockVerdict::ok;
  PoolExtent& extent = extent_of(entry);
  const std::size_t begin = extent.begin;
  const std::size_t bytes = extent.bytes;
  if (!book_.must_wait(entry)) {
    if (core_.poisons() && extent.stream == 0) poison(block.data, block.bytes);
    const bool may_keep = own != nullptr && in_turn && when == When::later && !book_.has_several_streams();
    if (may_keep && caches_.may_keep(*own, extent))
      caches_.keep(*own, entry, extent);
    else
      book_.release(entry);
  }
  if (!supply_.is_held()) book_.mark_frees();
  if (when == When::now)
    supply_.give_pages_back(begin, bytes);
  else
    supply_.poll_decay();
  return BlockVerdict::ok;
}

Result<BlockVerdict> LargeBlocks::note_use(BlockRef entry, const Block& block, StreamRef stream, std::uint32_t number) noexcept {
  if (const BlockVerdict verdict = recall(entry, block); verdict != BlockVerdict::ok) return verdict;
  const Status noted = book_.note_use(entry, stream, number);
  return noted ? Result<BlockVerdict>(BlockVerdict::ok) : noted.failure();
}

bool LargeBlocks::grow(BlockRef entry, Block& block, std::size_t bytes) noexcept {
  const auto rounded = try_align_up(bytes, Space::kGrain);
  const os::Lock lock(core_.mutex);
  take_in(caches_.front(), Kept::ends);
  if (!rounded || recall(entry, block) != BlockVerdict::ok) return false;
  PoolExtent* const extent = &extent_of(entry);
  // If the block's stream is gone, its number may belong to another stream, whose freed memory this block may
  // not use.
  const std::uint32_t stream = book_.find(block.stream_id) == extent->stream ? extent->stream : 0;
  // The new serial is stored first: the space may release the mutex, and until it is locked again no other
  // thread's free may match the block. Neither may a free by address alone: meanwhile the label names no
  // allocator.
  const std::uint64_t serial = core_.usage.next_serial();
  const std::uint64_t label = entry->label.load();
  entry->state.store(serial);
  entry->label.store(label & BlockEntry::kTagMask);
  const Space::Effort effort = supply_.is_held() ? Space::Effort::cached_only : Space::Effort::usual;
  const bool grown = *rounded <= extent->bytes || core_.space.grow(extent, *rounded, stream, effort);
  entry->label.store(label);
  if (!grown) {
    entry->state.store(block.serial);
    return false;
  }
  extent->requested = bytes;
  if (core_.poisons()) unpoison(block.data, bytes);
  core_.usage.grew(block.bytes, bytes);
  block.serial = serial;
  block.bytes = bytes;
  return true;
}

}  // namespace berth::internal::memory
