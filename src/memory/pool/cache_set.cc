// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/cache_set.h"

#include <algorithm>
#include <new>
#include <utility>

#include "berth/base/units.h"
#include "berth/record/misuse.h"
#include "os/lock/gate.h"

namespace berth::internal::memory {

namespace {

constexpr std::size_t kMostKept = 32_MiB;        // longer blocks are worth the lock
constexpr std::size_t kLeastKeptInAll = 64_MiB;  // all threads together may keep this much,
constexpr std::size_t kKeptShare = 32;           // or 1 / kKeptShare of what is committed

}  // namespace

CacheSet::CacheSet(PoolCore& core, StreamBook& book, Allocator& pool) noexcept : core_(core), book_(book), pool_(pool) {}

// ---- threads and their caches

ThreadCache* CacheSet::find_own(std::uint32_t number) const noexcept {
  if (number == 0 || number > count()) return nullptr;
  ThreadCache& cache = (*this)[number];
  if (!ThreadCaches::is_own(cache) || cache.retired.load() != 0) return nullptr;
  t_front = {core_.id, cache.stream_state, &cache};
  return &cache;
}

ThreadCache* CacheSet::add(std::uint32_t stream, std::uint64_t stream_id) noexcept {
  try {
    if (idle_.size() <= stream) idle_.resize(stream + 1);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  const std::uint32_t idle = idle_[stream] != 0 ? idle_[stream] : idle_retired_;
  ThreadCache* const cache = idle != 0 ? &(*this)[idle] : make();
  if (cache == nullptr) return nullptr;
  if (idle != 0) (idle_[stream] != 0 ? idle_[stream] : idle_retired_) = cache->next_idle;
  cache->entries = core_.entries.range();
  use_for(*cache, stream, stream_id);
  cache->thread.store(ThreadCaches::this_thread());
  return cache;
}

ThreadCache* CacheSet::make() noexcept {
  const PoolFacts facts{core_.entries.range(), core_.small_limit, core_.alignment, core_.poisons()};
  return caches_.add([&](std::uint32_t number) { return new (std::nothrow) ThreadCache(facts, number); });
}

// If the stream that it had is gone: live blocks that it handed out return to it when freed; no pending work
// can touch them.
void CacheSet::use_for(ThreadCache& cache, std::uint32_t stream, std::uint64_t stream_id) noexcept {
  cache.stream = stream;
  cache.stream_id = stream_id;
  if (cache.retired.load() == 0) return;
  cache.retired.store(0);
  if (!cache.gate.is_spin_lock()) cache.gate.open();
}

void CacheSet::disown(ThreadCache& cache) noexcept {
  cache.thread.store(0);
  if (t_front.cache == &cache) t_front = {};
  std::uint32_t& first = cache.retired.load() != 0 ? idle_retired_ : idle_[cache.stream];
  cache.next_idle = std::exchange(first, cache.number);
}

bool CacheSet::enter(ThreadCache& cache) const noexcept {
  while (!cache.gate.try_lock()) {
    const os::Lock wait(core_.mutex);  // the thread that has shut the gates holds it
    if (cache.retired.load() != 0) return false;
  }
  return true;
}

void CacheSet::thread_ended(ThreadCache* cache) noexcept {
  const os::Lock lock(core_.mutex);
  core_.usage.take_bytes(*cache);
  flush(*cache);
  disown(*cache);
}

void CacheSet::retire_stream(std::uint32_t stream) noexcept {
  const Shut shut(*this);
  for_each([&](ThreadCache& cache) {
    if (cache.stream != stream || cache.retired.load() != 0) return;
    core_.usage.take_bytes(cache);
    flush(cache);
    cache.retired.store(1);
    if (cache.thread.load() == 0) cache.next_idle = std::exchange(idle_retired_, cache.number);
  });
  if (stream < idle_.size()) idle_[stream] = 0;  // all of them are in the other list now
}

// ---- entries

BlockVerdict CacheSet::judge(BlockRef entry, const Block& block) const noexcept {
  const std::uint64_t state = entry->state.load();
  if (state == 0 || (state & ~(BlockEntry::kSentHome | BlockEntry::kExtraUses)) != block.serial)
    return was_issued(block.serial) ? BlockVerdict::double_free : BlockVerdict::foreign;
  if (entry.differs_from(block.data) != 0 || !entry->is_of(block.allocator_id)) return BlockVerdict::foreign;
  if ((state & BlockEntry::kSentHome) != 0) return BlockVerdict::double_free;
  return entry->small_bytes() == block.bytes ? BlockVerdict::ok : BlockVerdict::size_mismatch;
}

// ---- gates

void CacheSet::shut(std::uint32_t first, std::uint32_t last) const noexcept {
  for (std::uint32_t i = first; i <= last; ++i) (*this)[i].gate.close();
  os::fence_all_threads();
  for (std::uint32_t i = first; i <= last; ++i) (*this)[i].gate.drain();
  os::fence_all_threads();
}

void CacheSet::reopen(std::uint32_t first, std::uint32_t last) const noexcept {
  os::fence_all_threads();
  for (std::uint32_t i = first; i <= last; ++i) {
    ThreadCache& cache = (*this)[i];
    if (cache.retired.load() == 0 || cache.gate.is_spin_lock()) cache.gate.open();
  }
}

void CacheSet::before_fork() noexcept {
  shut(1, count());
  for_each([](ThreadCache& cache) { cache.inbox.close(); });
}

// The child has one thread; the caches of the others belong to no thread, and any thread may use their blocks.
// A block that another thread was about to free is the other's still, and stays live in the child.
void CacheSet::after_fork(bool in_child) noexcept {
  for_each([&](ThreadCache& cache) {
    cache.inbox.open();
    if (!in_child || cache.thread.load() == 0 || ThreadCaches::is_own(cache)) return;
    if (!core_.is_inherited()) flush(cache);
    disown(cache);
  });
  if (in_child && core_.is_inherited()) t_front = {};  // the fast path checks nothing: no request may take it
  reopen(1, count());
}

// ---- blocks that come and go

void CacheSet::read_inbox(ThreadCache& cache, Spill& spill, IntoBins into_bins) noexcept {
  for (std::uint32_t n = 0; n < Inbox::kEntries; ++n) {
    const Inbox::Message message = cache.inbox.get();
    if (message.serial == 0) return;
    const BlockRef block = message.block;
    if (block->state.load() != (message.serial | BlockEntry::kSentHome)) {
      // The owner freed it at the same moment, and both frees were accepted; this is the second.
      late_double_frees_.fetch_add(1, std::memory_order_relaxed);  // a number that guards no other memory
      continue;
    }
    const std::size_t bytes = block->small_bytes();
    block->state.store(0);
    cache.count_free(bytes);
    cache.make_untouchable(block, bytes);
    Bin& bin = cache.bins[block->size_class()];
    if (into_bins == IntoBins::no || !ThreadCache::put_in_bin(bin, block)) cache.give_up(block, spill);
  }
}

void CacheSet::drain_inbox(ThreadCache& cache) noexcept {
  Spill spill;
  read_inbox(cache, spill, IntoBins::no);
  return_to_slabs(spill.blocks());
}

void CacheSet::return_to_slabs(std::span<const BlockRef> blocks) noexcept {
  // What a release reads is rarely in the processor's caches. Prefetching it for all blocks overlaps the
  // misses.
  for (const BlockRef block : blocks) __builtin_prefetch(&block.group());
  for (const BlockRef block : blocks) core_.slabs.prefetch_slab(block);
  for (const BlockRef block : blocks) book_.release(block);
}

void CacheSet::flush(ThreadCache& cache) noexcept {
  drain_inbox(cache);
  for (SizeClass c = 0; c < core_.classes.count(); ++c) flush_bin(cache, c);
  end_keeping(cache);
}

void CacheSet::flush_bin(ThreadCache& cache, SizeClass size_class) noexcept {
  Bin& bin = cache.bins[size_class];
  return_to_slabs(bin.blocks());
  cache.from_slabs -= bin.count();
  bin.remove_first(bin.count());
}

void CacheSet::flush_all() noexcept {
  const Shut shut(*this);
  flush_unused();
}

void CacheSet::flush_unused() noexcept {
  for_each([&](ThreadCache& cache) { flush(cache); });
}

void CacheSet::flush_class(SizeClass size_class) noexcept {
  for_each([&](ThreadCache& cache) { flush_bin(cache, size_class); });
}

// ---- the large block that stays with its thread

bool CacheSet::may_keep(const ThreadCache& cache, const PoolExtent& extent) const noexcept {
  const std::size_t most = std::max(kLeastKeptInAll, core_.space.figures().committed / kKeptShare);
  return !cache.kept && cache.stream == extent.stream && cache.retired.load() == 0 && core_.decay_period.count() != 0 &&
         extent.bytes <= kMostKept && kept_bytes_ + extent.bytes <= most;
}

void CacheSet::keep(ThreadCache& cache, BlockRef block, PoolExtent& extent) noexcept {
  extent.keeper = cache.number;
  cache.kept = block;
  cache.kept_request = extent.requested;
  kept_bytes_ += extent.bytes;
}

void CacheSet::end_keeping(ThreadCache& cache) noexcept {
  const BlockRef block = cache.kept;
  if (!block) return;
  cache.kept = {};
  PoolExtent* const extent = core_.extent_of(block);
  extent->keeper = 0;
  kept_bytes_ -= extent->bytes;
  if (!block->is_live()) book_.release(block);
}

// ---- counts

void CacheSet::take_bytes() const noexcept {
  for_each([&](ThreadCache& cache) { core_.usage.take_bytes(cache); });
}

BlockCounts CacheSet::counts() const noexcept {
  BlockCounts all;
  for_each([&](const ThreadCache& cache) {
    all.allocations += cache.allocations();
    all.frees += cache.frees();
  });
  return all;
}

CacheSet::SentHome CacheSet::sent_home() const noexcept {
  SentHome sent;
  for_each([&](const ThreadCache& cache) {
    cache.inbox.for_each([&](const Inbox::Message& message) {
      if (message.block->state.load() != (message.serial | BlockEntry::kSentHome)) return;  // freed by its owner too
      sent.bytes += message.block->small_bytes();
      ++sent.blocks;
    });
  });
  return sent;
}

void CacheSet::report_late_double_frees() noexcept {
  if (late_double_frees_.load(std::memory_order_relaxed) == 0) [[likely]]
    return;
  for (std::uint32_t n = late_double_frees_.exchange(0, std::memory_order_relaxed); n > 0; --n)
    report_misuse({.kind = MisuseKind::double_free,
                   .allocator = "pool",
                   .device = core_.backend.device().key(),
                   .address = nullptr,
                   .bytes = 0,
                   .tag = {}});
}

std::string CacheSet::audit() const {
  std::size_t kept = 0;
  for (std::uint32_t i = 1; i <= count(); ++i) {
    const ThreadCache& cache = (*this)[i];
    if (std::string wrong = audit(cache); !wrong.empty()) return wrong;
    if (cache.kept) kept += core_.extent_of(cache.kept)->bytes;
  }
  return kept == kept_bytes_ ? "" : "pool: kept bytes are not the sum of the blocks that threads keep";
}

std::string CacheSet::audit(const ThreadCache& cache) const {
  std::size_t granted = 0;
  for (SizeClass c = 0; c < core_.classes.count(); ++c) {
    const Bin& bin = cache.bins[c];
    granted += bin.capacity() * std::size_t{core_.classes[c].bytes};
    if (bin.count() > bin.capacity() || bin.capacity() > Bin::kMost) return "pool: a bin holds more than it may";
    for (const BlockRef block : bin.blocks()) {
      if (block->is_live()) return "pool: a bin holds a block that is live";
      if (block.group().block_bytes.load() < core_.classes[c].bytes) return "pool: a bin holds a block that is too short";
    }
  }
  if (const BlockRef kept = cache.kept) {
    const PoolExtent* const extent = kept.is_large() ? core_.extent_of(kept) : nullptr;
    if (extent == nullptr || extent->keeper != cache.number || extent->requested != cache.kept_request)
      return "pool: a cache keeps a block that is not its own";
  }
  return granted == cache.granted ? "" : "pool: the bins' capacities do not add up to what the cache was granted";
}

}  // namespace berth::internal::memory
