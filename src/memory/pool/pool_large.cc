// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "berth/base/checked.h"
#include "berth/base/units.h"
#include "memory/pool/pool.h"

// The pool's large blocks: under the mutex, but for the one that a thread frees and asks for in turn, over and over. That one stays with the
// thread's cache (`ThreadCache::kept`): between two requests it is in no list of free memory, and nobody takes a lock for it.
//
// A kept block is recalled for whatever else is done with it: growing it, using it on another stream, freeing it from another thread. It goes
// back when its thread asks for large memory of another size, and with the rest of the cache.
namespace berth {

using namespace internal;
using namespace internal::memory;

namespace {

constexpr std::size_t kMostKept = 32_MiB;        // longer ones are worth the lock
constexpr std::size_t kLeastKeptInAll = 64_MiB;  // all threads together may keep so much,
constexpr std::size_t kKeptShare = 32;           // or such a part of what is committed
constexpr std::uint32_t kPollKeptEvery = 16;     // frees of a kept block, which are the program's clock as other frees are

// What the thread did last with large memory, to see when it takes turns: as many times in a row it has freed and asked for the same size.
struct Turns {
  static constexpr std::uint32_t kEnough = 8;  // with 2, blocks stayed where better places were free: resnet_train had 1.0144 for 1.0086
  std::uint64_t pool = 0;
  std::size_t bytes = 0;
  std::uint32_t count = 0;

  // Memory of that size is asked for, or freed. Whether the thread takes turns.
  bool come(std::uint64_t id, std::size_t size) noexcept {
    if (id != pool || size != bytes) count = 0;
    return count >= kEnough;
  }
  bool go(std::uint64_t id, std::size_t size) noexcept {
    if (id != pool || size != bytes) *this = {id, size, 0};
    count = std::min(count + 1, kEnough + 1);
    return count > kEnough;
  }
};
constinit thread_local Turns t_turns;

}  // namespace

// ---- the block that stays with its thread

bool Pool::obtain_kept(const Request& request, Block& block) noexcept {
  const CacheFront& front = t_front;
  if (front.allocator != id() || front.stream != request.stream.state() || request.alignment > Space::kGrain) return false;
  const ThreadCache::Taken taken = front.cache->take_kept(request.bytes, BlockEntry::make_label(request.allocator_id, request.tag, 0));
  if (taken.entry == nullptr) return false;
  block.data = base() + taken.entry->offset();  // not by way of the cache: it may have been told to keep the block no longer, just now
  block.serial = taken.serial;
  block.cookie = EntryRange::cookie(taken.entry);
  return true;
}

bool Pool::may_keep(const ThreadCache& cache, const PoolExtent& extent) const noexcept {
  const std::size_t most = std::max(kLeastKeptInAll, space_.figures().committed / kKeptShare);
  return cache.kept == nullptr && cache.stream == extent.stream && cache.retired.load() == 0 && decay_period_.count() != 0 &&
         extent.bytes <= kMostKept && kept_bytes_ + extent.bytes <= most;
}

// REQUIRES: the caller owns the cache, and the block is free.
void Pool::keep(ThreadCache& cache, BlockEntry* entry, const PoolExtent& extent) noexcept {
  entry->set_where(extent.begin, cache.number);
  cache.kept = entry;
  cache.kept_request = extent.requested;
  kept_bytes_ += extent.bytes;
}

// REQUIRES: the caller owns the cache, or has shut the gates.
void Pool::end_keeping(ThreadCache& cache) noexcept {
  BlockEntry* const entry = cache.kept;
  if (entry == nullptr) return;
  const PoolExtent* const extent = space_.extent(entry->extent());
  cache.kept = nullptr;
  entry->set_where(extent->begin, 0);
  kept_bytes_ -= extent->bytes;
  if (entry->serial.load() == 0) release(entry);
}

// From here on the lock alone decides over the block, if it is large.
void Pool::recall(const BlockEntry* entry) noexcept {
  const std::uint32_t owner = entry->is_large() ? entry->owner() : 0;
  if (owner == 0) return;
  std::optional<AllShut> shut;
  if (is_inherited() || ThreadCaches::find_number(id(), owner) == nullptr) shut.emplace(*this);
  end_keeping(*caches_[owner].load(std::memory_order_relaxed));
}

// ---- the way that always works

Status Pool::obtain_large(const Request& request, Block& block) noexcept {
  if (obtain_kept(request, block)) return {};
  if (t_turns.come(id(), request.bytes)) (void)cache_for(request.stream);  // which will keep it; without one it goes on as before
  // Large blocks that are not so large still begin in a grain of their own, by which they are found.
  const auto rounded = try_align_up(request.bytes, request.bytes < kSlabGrain ? kSlabGrain : Space::kGrain);
  ThreadCache* const own = t_front.allocator == id() ? t_front.cache : nullptr;
  const os::Lock lock(mutex_);
  if (own != nullptr) {
    count_bytes(*own);
    if (own->has_kept()) end_keeping(*own);  // so that the space has all that this thread has freed
  }
  if (!rounded) return refused({ErrorCode::out_of_memory, 0, "no address space is that large"});
  std::uint32_t stream = 0;
  PoolExtent* extent = nullptr;
  Status done = ready(request.stream, stream);
  if (done) {
    done = with_effort(stream, [&](Space::Effort effort) BERTH_NO_THREAD_ANALYSIS {
      const Result<PoolExtent*> taken =
          space_.take(Space::Part::large, *rounded, std::max(request.alignment, Space::kGrain), stream, effort);
      if (taken) extent = *taken;
      return taken ? Status() : Status(taken.failure());
    });
  }
  const std::uint32_t number = done ? entries_.take(BlockTable::kLarge, 1) : 0;
  if (done && number == 0) {
    space_.give(extent, stream, streams_.point_of_free(stream));
    done = kNoTables;
  }
  if (!done) return refused(done.failure());
  extent->entry = number;
  extent->stream = stream;
  extent->requested = request.bytes;
  BlockEntry& entry = entries_[number];
  entry.set_where(extent->begin, 0);
  entry.label.store(BlockEntry::make_label(request.allocator_id, request.tag, 0));
  entry.kind.store(extent->index << 8 | BlockEntry::kLargeClass);
  entry.serial.store(++serial_);
  slabs_.enter_large(extent->begin, number);
  count_allocation(request.bytes);
  block.data = space_.base() + extent->begin;
  if (poisons()) {
    unpoison(block.data, request.bytes);
    if (stream == 0) poison(space_.base() + extent->begin + request.bytes, extent->bytes - request.bytes);
  }
  block.serial = serial_;
  block.cookie = EntryRange::cookie(&entry);
  return {};
}

BlockVerdict Pool::judge_large(const BlockEntry* entry, const Block& block) const noexcept {
  const PoolExtent* const extent = entry->is_large() ? space_.extent(entry->extent()) : nullptr;
  const std::uint64_t serial = entry->serial.load();
  if (extent == nullptr || serial == 0 || serial != block.serial)
    return was_issued(block.serial) ? BlockVerdict::double_free : BlockVerdict::foreign;
  if (space_.base() + extent->begin != block.data) return BlockVerdict::foreign;
  if (!entry->is_of(block.allocator_id)) return BlockVerdict::foreign;
  return extent->requested == block.bytes ? BlockVerdict::ok : BlockVerdict::size_mismatch;
}

BlockVerdict Pool::free_large(BlockEntry* entry, const Block& block, When when) noexcept {
  ThreadCache* const own = t_front.allocator == id() ? t_front.cache : nullptr;
  if (own != nullptr && when == When::later && own->put_kept(entry, block)) {
    if (++own->kept_polls % kPollKeptEvery == 0) {
      const os::Lock lock(mutex_);
      decay(false);
    }
    return BlockVerdict::ok;
  }
  const bool in_turn = t_turns.go(id(), block.bytes);
  const os::Lock lock(mutex_);
  if (own != nullptr) {
    count_bytes(*own);
    if (when == When::now && own->has_kept()) end_keeping(*own);  // it may lie in the same pages
  }
  recall(entry);
  const BlockVerdict verdict = judge_large(entry, block);
  if (verdict != BlockVerdict::ok) return verdict;
  entry->serial.store(0);
  count_free(block.bytes);
  if (is_inherited()) return BlockVerdict::ok;
  const PoolExtent* const extent = space_.extent(entry->extent());
  const std::size_t begin = extent->begin;
  const std::size_t bytes = extent->bytes;
  if (extra_.empty() || !extra_.free(entries_.number(entry), streams_)) {
    if (poisons() && extent->stream == 0) poison(block.data, block.bytes);
    if (own != nullptr && in_turn && when == When::later && may_keep(*own, *extent)) {
      keep(*own, entry, *extent);
    } else {
      release(entry);
    }
  }
  if (when == When::now)
    give_pages_back(begin, bytes);
  else
    poll_decay();
  return BlockVerdict::ok;
}

}  // namespace berth
