// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/small_blocks.h"

#include <algorithm>
#include <array>

#include "memory/pool/escalation.h"

namespace berth::internal::memory {

namespace {

constexpr std::size_t kBatchBytes = std::size_t{128} << 10;  // fetched from the slabs at a time
constexpr std::size_t kBinBytes = std::size_t{512} << 10;    // the most that one bin keeps
constexpr std::uint32_t kSpill = 16;                         // most blocks spilled at a time: bounds latency

// What a thread's cache may keep: a share of all small memory, so that caches are a small part of the whole,
// and bins are deep where traffic is high.
constexpr std::size_t kLeastBudget = std::size_t{2} << 20;
constexpr std::size_t kMostBudget = std::size_t{64} << 20;
constexpr std::size_t kBudgetShare = 16;

void spill_first(ThreadCache& cache, Bin& bin, std::uint32_t count, Spill& spill) noexcept {
  for (const BlockRef block : bin.blocks().first(count)) cache.give_up(block, spill);
  bin.remove_first(count);
}

}  // namespace

// ---- requests

SizeClass SmallBlocks::class_of(const Request& request) const noexcept {
  return request.alignment <= core_.alignment ? core_.classes.find(request.bytes)
                                              : core_.classes.find_aligned(request.bytes, request.alignment);
}

std::optional<Status> SmallBlocks::obtain(const Request& request, Block& block) noexcept {
  const SizeClass size_class = class_of(request);
  if (size_class >= core_.classes.count()) return std::nullopt;
  ThreadCache* const cache = supply_.cache_for(request.stream);
  if (cache == nullptr) return obtain_without_cache(size_class, request, block);
  Bin& bin = cache->bins[size_class];
  Spill spill;
  if (!caches_.enter(*cache)) return obtain_without_cache(size_class, request, block);
  if (bin.count() == 0) caches_.read_inbox(*cache, spill, CacheSet::IntoBins::yes);
  const BlockRef cached = bin.pop();
  if (cached)
    hand_out(*cache, cached, size_class, request, block);
  else if (bin.capacity() < batch_of(size_class))
    make_room(*cache, size_class, spill);
  cache->gate.unlock();
  caches_.report_late_double_frees();
  if (cached) {
    return_spill(spill);
    return Status();
  }

  std::array<BlockRef, kBatch> batch;
  const std::size_t wanted = std::clamp<std::size_t>(bin.capacity(), 1, batch_of(size_class));
  const Result<std::size_t> taken = refill(*cache, size_class, std::span(batch).first(wanted), spill);
  // A slab holds several blocks; if there is no memory left for one, there may be enough for the block alone.
  if (!taken) return taken.failure().code == ErrorCode::out_of_memory ? std::nullopt : std::optional<Status>(taken.failure());
  if (!caches_.enter(*cache)) {
    const os::Lock lock(core_.mutex);
    caches_.return_to_slabs(std::span(batch).first(*taken));
    return core_.usage.refused({ErrorCode::invalid_argument, 0, "the stream of the request is gone"});
  }
  cache->from_slabs += static_cast<std::int64_t>(*taken);
  hand_out(*cache, batch[0], size_class, request, block);
  // From the last to the first, so that the lowest address is handed out next.
  Spill rest;
  for (std::size_t i = *taken; i > 1; --i) {
    if (!ThreadCache::put_in_bin(bin, batch[i - 1])) cache->give_up(batch[i - 1], rest);
  }
  cache->gate.unlock();
  return_spill(rest);
  return Status();
}

// REQUIRES: the caller is inside the cache's gate; the entry is the cache's and free.
void SmallBlocks::hand_out(ThreadCache& cache, BlockRef entry, SizeClass size_class, const Request& request, Block& block) noexcept {
  block.serial = cache.make_live(entry, size_class, request.bytes, BlockEntry::make_label(request.allocator_id, request.tag));
  block.data = entry.data();
  block.cookie = entry.cookie();
}

// Returns to the slabs what the cache has spilled, then takes a batch for a bin: at least one block, or a
// failure.
Result<std::size_t> SmallBlocks::refill(ThreadCache& cache, SizeClass size_class, std::span<BlockRef> batch, const Spill& spill) noexcept {
  const os::Lock lock(core_.mutex);
  core_.usage.take_bytes(cache);
  caches_.return_to_slabs(spill.blocks());
  if (cache.has_kept()) caches_.end_keeping(cache);
  std::size_t count = 0;
  const std::size_t in_slabs = core_.slabs.bytes();
  const Status done = take(size_class, cache.stream, batch, count);
  if (core_.slabs.bytes() > in_slabs) supply_.release_excess();
  cache.entries = core_.entries.range();
  cache_budget_.store(std::min(core_.slabs.bytes() / kBudgetShare / caches_.count(), kMostBudget));
  if (done) return count;
  return done.failure().code == ErrorCode::out_of_memory ? done.failure() : core_.usage.refused(done.failure());
}

// With the mutex; releases it.
Status SmallBlocks::take(SizeClass size_class, std::uint32_t stream, std::span<BlockRef> into, std::size_t& count) noexcept {
  Status done;
  for (Escalation effort(supply_, stream); effort.next(done);) {
    count = core_.slabs.take(size_class, stream, into);
    done = count != 0 ? Status() : add_slab(size_class, stream, effort.level());
    if (done && count == 0) count = core_.slabs.take(size_class, stream, into);
  }
  return done;
}

// Before the pool needs more memory than it ever did: what the thread keeps of sizes that it no longer uses may
// be most of some slabs. With the mutex.
void SmallBlocks::flush_own_cache() noexcept {
  ThreadCache* const own = caches_.front();
  if (own == nullptr || own->retired.load() != 0) return;
  core_.usage.take_bytes(*own);
  caches_.flush(*own);
}

Status SmallBlocks::add_slab(SizeClass size_class, std::uint32_t stream, Space::Effort effort) noexcept {
  const std::size_t bytes = core_.classes[size_class].slab_bytes;
  if (effort == Space::Effort::usual && supply_.would_need_more(bytes)) flush_own_cache();
  Result<PoolExtent*> extent = core_.space.take(Space::Part::slabs, bytes, kSlabGrain, stream, effort);
  if (!extent && effort == Space::Effort::cached_only)  // better in the wrong part than not at all
    extent = core_.space.take(Space::Part::large, bytes, kSlabGrain, stream, effort);
  if (!extent) return extent.failure();
  (*extent)->stream = stream;
  if (!core_.slabs.add(*extent, core_.base() + (*extent)->begin, size_class, stream)) {
    book_.release(*extent);
    return core_.entries.refusal();
  }
  if (stream == 0) core_.space.make_untouchable(**extent);
  return {};
}

// A thread that is ending, or for whose cache there is no heap, goes to the slabs for each block.
Status SmallBlocks::obtain_without_cache(SizeClass size_class, const Request& request, Block& block) noexcept {
  const os::Lock lock(core_.mutex);
  BlockRef entry;
  std::size_t count = 0;
  const Result<std::uint32_t> stream = supply_.ready(request.stream);
  const Status done = stream ? take(size_class, *stream, std::span(&entry, 1), count) : Status(stream.failure());
  if (!done) return core_.usage.refused(done.failure());
  block.serial = core_.usage.next_serial();
  block.data = entry.data();
  block.cookie = entry.cookie();
  entry->label.store(BlockEntry::make_label(request.allocator_id, request.tag) | BlockEntry::class_and_bytes(size_class, request.bytes));
  entry->state.store(block.serial);
  core_.usage.allocated(request.bytes);
  if (core_.poisons()) unpoison(block.data, request.bytes);
  return {};
}

std::size_t SmallBlocks::batch_of(SizeClass size_class) const noexcept {
  return std::clamp<std::size_t>(kBatchBytes / core_.classes[size_class].bytes, 1, kBatch);
}

// ---- bins that are full

// Makes room for a block of the class: a larger bin while the budget lasts, else by spilling. A bin starts with one
// block and doubles, up to a batch: a thread that uses many sizes needs few blocks of each. REQUIRES: inside the gate.
void SmallBlocks::make_room(ThreadCache& cache, SizeClass size_class, Spill& spill) noexcept {
  Bin& bin = cache.bins[size_class];
  const std::size_t bytes = core_.classes[size_class].bytes;
  const auto most = static_cast<std::uint32_t>(std::clamp<std::size_t>(kBinBytes / bytes, 2, Bin::kMost));
  if (bin.capacity() < most) {
    const auto batch = static_cast<std::uint32_t>(batch_of(size_class));
    const std::uint32_t more = std::min({std::max(bin.capacity(), 1U), batch, most - bin.capacity()});
    const std::size_t budget = std::max(cache_budget_.load(), kLeastBudget);
    if (cache.granted + more * bytes > budget) shrink_a_bin(cache, size_class, spill);
    if (cache.granted + more * bytes <= budget && bin.set_capacity(bin.capacity() + more)) {
      cache.granted += more * bytes;
      return;
    }
  }
  spill_first(cache, bin, std::min((bin.count() + 1) / 2, kSpill), spill);  // those that have waited longest
}

void SmallBlocks::shrink_a_bin(ThreadCache& cache, SizeClass but_not, Spill& spill) noexcept {
  for (SizeClass tried = 0; tried < core_.classes.count(); ++tried) {
    cache.clock = (cache.clock + 1) % core_.classes.count();
    Bin& bin = cache.bins[cache.clock];
    if (cache.clock == but_not || bin.capacity() == 0) continue;
    const std::uint32_t less = std::min(bin.capacity(), kSpill);
    const std::uint32_t rest = bin.capacity() - less;
    if (bin.count() > rest) spill_first(cache, bin, bin.count() - rest, spill);
    (void)bin.set_capacity(rest);  // it has a shelf
    cache.granted -= less * std::size_t{core_.classes[cache.clock].bytes};
    return;
  }
}

void SmallBlocks::return_spill(const Spill& spill) noexcept {
  if (spill.blocks().empty()) return;
  const os::Lock lock(core_.mutex);
  caches_.return_to_slabs(spill.blocks());
  supply_.poll_decay();
}

// ---- frees

// Judged here as a guess; the block's owner judges again.
BlockVerdict SmallBlocks::free(BlockRef entry, const Block& block, When when) noexcept {
  __builtin_prefetch(entry.operator->(), 1);  // another thread's: to be read, and changed at once
  if (const BlockVerdict verdict = caches_.judge(entry, block); verdict != BlockVerdict::ok) return verdict;
  const std::uint32_t owner = BlockEntry::owner_of(block.serial);
  if (owner == 0 || entry->has_extra_uses() || when == When::now || core_.is_inherited()) return free_under_lock(entry, block, when);
  if (ThreadCache* const own = caches_.find_own(owner)) return free_own(*own, entry, block);
  return send_home(caches_[owner], entry, block);
}

BlockVerdict SmallBlocks::free_own(ThreadCache& cache, BlockRef entry, const Block& block) noexcept {
  Spill spill;
  if (!caches_.enter(cache)) return send_home(cache, entry, block);
  const BlockVerdict verdict = caches_.judge(entry, block);
  if (verdict == BlockVerdict::ok) {
    const SizeClass size_class = entry->size_class();
    entry->state.store(0);
    cache.count_free(block.bytes);
    cache.make_untouchable(entry, block.bytes);
    Bin& bin = cache.bins[size_class];
    if (bin.count() == bin.capacity()) make_room(cache, size_class, spill);
    if (!ThreadCache::put_in_bin(bin, entry)) cache.give_up(entry, spill);
  }
  cache.gate.unlock();
  return_spill(spill);
  return verdict;
}

// Another thread's block. Of several threads that free it at the same moment, one succeeds here.
BlockVerdict SmallBlocks::send_home(ThreadCache& owner, BlockRef entry, const Block& block) noexcept {
  const std::uint64_t sent = block.serial | BlockEntry::kSentHome;
  if (!entry->state.replace(block.serial, sent)) return BlockVerdict::double_free;
  if (owner.inbox.put({block.serial, entry})) return BlockVerdict::ok;
  (void)entry->state.replace(sent, block.serial);
  return free_under_lock(entry, block, When::later);
}

// A block that no cache owns, or that must not wait for its owner.
BlockVerdict SmallBlocks::free_under_lock(BlockRef entry, const Block& block, When when) noexcept {
  const os::Lock lock(core_.mutex);
  const std::size_t begin = core_.offset_of(block.data);
  const SizeClass size_class = entry->size_class();
  const std::uint32_t owner = BlockEntry::owner_of(block.serial);
  {
    const CacheSet::Shut shut = when == When::now ? CacheSet::Shut(caches_) : CacheSet::Shut(caches_, owner);
    if (owner != 0) {
      caches_.drain_inbox(caches_[owner]);
      core_.usage.take_bytes(caches_[owner]);
    }
    if (const BlockVerdict verdict = caches_.judge(entry, block); verdict != BlockVerdict::ok) return verdict;
    entry->state.store(0);
    core_.usage.freed(block.bytes);
    if (core_.is_inherited()) return BlockVerdict::ok;  // a child leaves the device, and what is on it, alone
    if (!book_.must_wait(entry)) {
      if (core_.poisons() && core_.slabs.stream_of(entry) == 0) poison(block.data, block.bytes);
      book_.release(entry);
    }
    if (when == When::now) caches_.flush_class(size_class);
  }
  if (!supply_.is_held()) book_.mark_frees();
  if (when == When::now) supply_.give_pages_back(begin, core_.classes[size_class].bytes);
  return BlockVerdict::ok;
}

Result<BlockVerdict> SmallBlocks::note_use(BlockRef entry, const Block& block, StreamRef stream, std::uint32_t number) noexcept {
  // A small block belongs to its owner: with the mutex held, on the owner's thread, no other thread can change
  // it. In a child that must leave the pool alone, the thread's own cache is not looked up, because a cache
  // that is found serves the next request.
  const std::uint32_t owner = entry->owner();
  const bool is_own = !core_.is_inherited() && caches_.find_own(owner) != nullptr;
  const CacheSet::Shut shut(caches_, is_own || owner > caches_.count() ? 0 : owner);
  if (const BlockVerdict verdict = caches_.judge(entry, block); verdict != BlockVerdict::ok) return verdict;
  const Status noted = book_.note_use(entry, stream, number);
  return noted ? Result<BlockVerdict>(BlockVerdict::ok) : noted.failure();
}

// ---- growth

// Within its class. A block that other streams use does not grow: they are noted under its serial.
bool SmallBlocks::may_grow(BlockRef entry, const Block& block, std::size_t bytes) const noexcept {
  return !entry->has_extra_uses() && caches_.judge(entry, block) == BlockVerdict::ok && bytes <= core_.classes[entry->size_class()].bytes;
}

bool SmallBlocks::grow(BlockRef entry, Block& block, std::size_t bytes) noexcept {
  if (caches_.judge(entry, block) != BlockVerdict::ok) return false;
  const std::uint32_t owner = BlockEntry::owner_of(block.serial);
  if (ThreadCache* const own = owner == 0 ? nullptr : caches_.find_own(owner); own != nullptr && caches_.enter(*own)) {
    const bool grown = grow_in_cache(*own, entry, block, bytes);
    own->gate.unlock();
    return grown;
  }
  const os::Lock lock(core_.mutex);
  const CacheSet::Shut shut(caches_, owner);
  if (owner != 0) return grow_in_cache(caches_[owner], entry, block, bytes);
  if (!may_grow(entry, block, bytes)) return false;
  core_.usage.grew(block.bytes, bytes);
  if (core_.poisons()) unpoison(block.data, bytes);
  block.serial = core_.usage.next_serial();
  entry->label.store(BlockEntry::make_label(block.allocator_id, entry->tag()) | BlockEntry::class_and_bytes(entry->size_class(), bytes));
  entry->state.store(block.serial);
  block.bytes = bytes;
  return true;
}

// REQUIRES: the caller is inside the cache's gate, or has shut it.
bool SmallBlocks::grow_in_cache(ThreadCache& cache, BlockRef entry, Block& block, std::size_t bytes) noexcept {
  if (!may_grow(entry, block, bytes)) return false;
  cache.count_free(block.bytes);
  block.serial = cache.make_live(entry, entry->size_class(), bytes, BlockEntry::make_label(block.allocator_id, entry->tag()));
  block.bytes = bytes;
  return true;
}

}  // namespace berth::internal::memory
