// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <new>

#include "berth/record/misuse.h"
#include "memory/pool/pool.h"

// The pool's small blocks: the way through the thread caches.
namespace berth {

using namespace internal;
using namespace internal::memory;

namespace {

constexpr std::size_t kBatchBytes = std::size_t{128} << 10;  // fetched from the slabs at a time
constexpr std::size_t kBinBytes = std::size_t{512} << 10;    // the most that one bin keeps
constexpr std::uint32_t kSpill = 16;                         // blocks given up at a time, at most: nobody waits long for one request

// What a thread's cache may keep: a share of all small memory, so that caches matter little to the whole, and bins are deep where much
// comes and goes.
constexpr std::size_t kLeastBudget = std::size_t{2} << 20;
constexpr std::size_t kMostBudget = std::size_t{64} << 20;
constexpr std::size_t kBudgetShare = 16;

}  // namespace

// As Allocator::allocate has it, for requests that come through an adaptor.
Status Pool::obtain(const Request& request, Block& block) noexcept {
  const CacheFront& front = t_front;
  if (front.allocator == id() && front.stream == request.stream.state() && request.alignment <= usual_alignment_) [[likely]] {
    const ThreadCache::Taken taken = front.cache->take(request.bytes, BlockEntry::make_label(request.allocator_id, request.tag, 0));
    if (taken.entry != nullptr) [[likely]] {
      block.data = front.cache->address(taken.entry);
      block.serial = taken.serial;
      block.cookie = EntryRange::cookie(taken.entry);
      return {};
    }
  }
  return obtain_slowly(request, block);
}

// REQUIRES: the caller is inside the cache's gate; the entry is the cache's and free.
void Pool::hand_out(ThreadCache& cache, BlockEntry* entry, const Request& request, Block& block) noexcept {
  block.serial = cache.make_live(entry, request.bytes, BlockEntry::make_label(request.allocator_id, request.tag, 0));
  block.data = cache.address(entry);
  block.cookie = EntryRange::cookie(entry);
}

Status Pool::obtain_slowly(const Request& request, Block& block) noexcept {
  if (is_inherited()) {
    const os::Lock lock(mutex_);
    return refused({ErrorCode::fork_unsafe, 0, "the pool was made before fork, for a device that does not survive it"});
  }
  return request.bytes <= small_limit_ ? obtain_small(request, block) : obtain_large(request, block);
}

Status Pool::obtain_small(const Request& request, Block& block) noexcept {
  const SizeClass size_class =
      request.alignment <= usual_alignment_ ? classes_.find(request.bytes) : classes_.find_aligned(request.bytes, request.alignment);
  if (size_class >= classes_.count()) return obtain_large(request, block);
  ThreadCache* const cache = cache_for(request.stream);
  if (cache == nullptr) return obtain_without_cache(size_class, request, block);
  Bin& bin = cache->bins[size_class];
  Spill spill;
  if (!enter(*cache)) return obtain_without_cache(size_class, request, block);
  if (bin.count() == 0) read_inbox(*cache, spill, IntoBins::yes);
  BlockEntry* const cached = bin.pop();
  if (cached != nullptr)
    hand_out(*cache, cached, request, block);
  else if (bin.capacity() == 0)
    make_room(*cache, size_class, spill);
  cache->gate.unlock();
  report_late_double_frees();
  if (cached != nullptr) {
    return_spill(spill);
    return {};
  }

  std::array<BlockEntry*, kBatch> batch;
  std::size_t count = 0;
  const Status done =
      refill(*cache, size_class, std::span(batch).first(std::clamp<std::size_t>(bin.capacity(), 1, batch_of(size_class))), spill, count);
  // A slab holds several blocks; where there is no memory left for one, there may be enough for the block alone.
  if (!done) return done.failure().code == ErrorCode::out_of_memory ? obtain_large(request, block) : done;
  if (!enter(*cache)) {
    const os::Lock lock(mutex_);
    return_to_slabs(std::span(batch).first(count));
    return refused({ErrorCode::invalid_argument, 0, "the stream of the request is gone"});
  }
  cache->from_slabs += static_cast<std::int64_t>(count);
  hand_out(*cache, batch[0], request, block);
  // From the last to the first, so that the lowest address is handed out next.
  Spill rest;
  while (count > 1) {
    BlockEntry* const entry = batch[--count];
    if (!bin.push(entry)) cache->give_up(entry, rest);
  }
  cache->gate.unlock();
  return_spill(rest);
  return {};
}

Status Pool::refill(ThreadCache& cache, SizeClass size_class, std::span<BlockEntry*> batch, Spill& spill,
                    std::size_t& count_taken) noexcept {
  const os::Lock lock(mutex_);
  count_bytes(cache);
  return_to_slabs(spill.entries());
  if (cache.has_kept()) end_keeping(cache);
  const Status done = with_effort(cache.stream, [&](Space::Effort effort) BERTH_NO_THREAD_ANALYSIS {
    const Result<std::size_t> taken = slabs_.take(size_class, cache.stream, cache.number, effort, batch);
    if (taken) count_taken = *taken;
    return taken ? Status() : Status(taken.failure());
  });
  cache_budget_.store(std::min(slabs_.bytes() / kBudgetShare / cache_count_.load(std::memory_order_relaxed), kMostBudget));
  if (!done && done.failure().code != ErrorCode::out_of_memory) ++failures_;
  return done;
}

// A thread that is ending, or for whose cache there is no heap, goes to the slabs for each block.
Status Pool::obtain_without_cache(SizeClass size_class, const Request& request, Block& block) noexcept {
  const os::Lock lock(mutex_);
  std::uint32_t stream = 0;
  BlockEntry* entry = nullptr;
  Status done = ready(request.stream, stream);
  if (done) {
    done = with_effort(stream, [&](Space::Effort effort) BERTH_NO_THREAD_ANALYSIS {
      const Result<std::size_t> taken = slabs_.take(size_class, stream, 0, effort, std::span(&entry, 1));
      return taken ? Status() : Status(taken.failure());
    });
  }
  if (!done) return refused(done.failure());
  entry->label.store(BlockEntry::make_label(request.allocator_id, request.tag, request.bytes));
  entry->serial.store(++serial_);
  count_allocation(request.bytes);
  block.data = base() + entry->offset();
  if (poisons()) unpoison(block.data, request.bytes);
  block.serial = serial_;
  block.cookie = EntryRange::cookie(entry);
  return {};
}

std::size_t Pool::batch_of(SizeClass size_class) const noexcept {
  return std::clamp<std::size_t>(kBatchBytes / classes_[size_class].bytes, 1, kBatch);
}

ThreadCache* Pool::cache_for(StreamRef stream) noexcept {
  if (ThreadCache* const found = ThreadCaches::find(id(), stream.state())) return found;
  if (!ThreadCaches::reserve()) return nullptr;
  ThreadCache* made = nullptr;
  {
    const os::Lock lock(mutex_);
    std::uint32_t number = 0;
    const Status able = ready(stream, number);
    while (ThreadCache* const retired = ThreadCaches::forget_retired(id())) retired->owned = false;
    if (able) made = make_cache(number, stream.id());
  }
  if (made != nullptr) ThreadCaches::enter(std::static_pointer_cast<Pool>(shared_from_this()), {id(), stream.state(), made});
  return made;
}

ThreadCache* Pool::make_cache(std::uint32_t stream, std::uint64_t stream_id) noexcept {
  const std::uint32_t made = cache_count_.load(std::memory_order_relaxed);
  for (std::uint32_t i = 1; i <= made; ++i) {
    ThreadCache* const cache = caches_[i].load(std::memory_order_relaxed);
    const bool retired = cache->retired.load() != 0;
    if (cache->owned || (cache->stream != stream && !retired)) continue;
    cache->owned = true;
    if (retired) reuse(*cache, stream, stream_id);
    return cache;
  }
  if (made + 1 >= kMostCaches) return nullptr;
  const PoolFacts facts{base_.load(), entries_.range(), small_limit_, usual_alignment_, poisons()};
  auto* const cache = new (std::nothrow) ThreadCache(facts, made + 1, stream, stream_id);
  if (cache == nullptr) return nullptr;
  cache->owned = true;
  caches_[made + 1].store(cache, std::memory_order_release);  // complete, for who reads it without the lock
  cache_count_.store(made + 1, std::memory_order_release);
  return cache;
}

// A cache whose stream is gone, for another. Live blocks that it handed out come back to it; no work can touch them any more.
void Pool::reuse(ThreadCache& cache, std::uint32_t stream, std::uint64_t stream_id) noexcept {
  cache.stream = stream;
  cache.stream_id = stream_id;
  cache.retired.store(0);
  if (!cache.gate.is_spin_lock()) cache.gate.open();
}

// False: its stream is gone, and the gate stays shut.
bool Pool::enter(ThreadCache& cache) noexcept {
  while (!cache.gate.try_lock()) {
    const os::Lock wait(mutex_);  // who has shut the gates holds it
    if (cache.retired.load() != 0) return false;
  }
  return true;
}

// Makes room for a block of the class: a larger bin while the budget lasts, else by spilling. REQUIRES: inside the gate.
void Pool::make_room(ThreadCache& cache, SizeClass size_class, Spill& spill) noexcept {
  Bin& bin = cache.bins[size_class];
  const std::size_t bytes = classes_[size_class].bytes;
  const auto most = static_cast<std::uint32_t>(std::clamp<std::size_t>(kBinBytes / bytes, 2, Bin::kMost));
  if (bin.capacity() < most) {
    const auto more = std::min(static_cast<std::uint32_t>(batch_of(size_class)), most - bin.capacity());
    const std::size_t budget = std::max(cache_budget_.load(), kLeastBudget);
    if (cache.granted + more * bytes > budget) shrink_a_bin(cache, size_class, spill);
    if (cache.granted + more * bytes <= budget) {
      cache.granted += more * bytes;
      bin.set_capacity(bin.capacity() + more);
      return;
    }
  }
  spill_first(cache, bin, std::min((bin.count() + 1) / 2, kSpill), spill);  // those that were put in first, and have waited longest
}

void Pool::shrink_a_bin(ThreadCache& cache, SizeClass but_not, Spill& spill) noexcept {
  for (SizeClass tried = 0; tried < classes_.count(); ++tried) {
    cache.clock = (cache.clock + 1) % classes_.count();
    Bin& bin = cache.bins[cache.clock];
    if (cache.clock == but_not || bin.capacity() == 0) continue;
    const std::uint32_t less = std::min(bin.capacity(), kSpill);
    const std::uint32_t rest = bin.capacity() - less;
    if (bin.count() > rest) spill_first(cache, bin, bin.count() - rest, spill);
    bin.set_capacity(rest);
    cache.granted -= less * std::size_t{classes_[cache.clock].bytes};
    return;
  }
}

void Pool::spill_first(ThreadCache& cache, Bin& bin, std::uint32_t count, Spill& spill) noexcept {
  for (BlockEntry* const entry : bin.entries().first(count)) cache.give_up(entry, spill);
  bin.remove_first(count);
}

void Pool::return_spill(const Spill& spill) noexcept {
  if (spill.entries().empty()) return;
  const os::Lock lock(mutex_);
  return_to_slabs(spill.entries());
  poll_decay();
}

void Pool::return_to_slabs(std::span<BlockEntry* const> entries) noexcept {
  // What giving one back looks at is rarely in the processor's caches: fetched for all of them at once, it is waited for once.
  for (const BlockEntry* const entry : entries) __builtin_prefetch(entry, 1);
  for (const BlockEntry* const entry : entries) slabs_.prefetch_entry(entry);
  for (const BlockEntry* const entry : entries) slabs_.prefetch_slab(entry);
  for (BlockEntry* const entry : entries) slabs_.give(entry);
}

BlockVerdict Pool::give_back(const Block& block, When when, Block* known) noexcept {
  const CacheFront& front = t_front;
  if (front.allocator == id() && when == When::later && known == nullptr && front.cache->put(block)) [[likely]]
    return BlockVerdict::ok;
  return give_back_slowly(block, when, known);
}

// REQUIRES: the block was judged right a moment ago; whoever owns it judges again.
BlockVerdict Pool::free_small(BlockEntry* entry, const Block& block) noexcept {
  const std::uint32_t owner = entry->owner();
  if (owner == 0) return free_under_lock(entry, block, When::later);
  if (ThreadCache* const own = ThreadCaches::find_number(id(), owner)) return free_own(*own, entry, block);
  return send_home(*caches_[owner].load(std::memory_order_acquire), entry, block);
}

BlockVerdict Pool::free_own(ThreadCache& cache, BlockEntry* entry, const Block& block) noexcept {
  Spill spill;
  if (!enter(cache)) return send_home(cache, entry, block);
  const BlockVerdict verdict = entry->owner() == cache.number ? judge(entry, block) : BlockVerdict::double_free;
  if (verdict == BlockVerdict::ok) {
    const SizeClass size_class = entry->size_class();
    entry->serial.store(0);
    cache.count_free(block.bytes);
    cache.make_untouchable(entry, block.bytes);
    Bin& bin = cache.bins[size_class];
    if (bin.count() == bin.capacity()) make_room(cache, size_class, spill);
    if (!bin.push(entry)) cache.give_up(entry, spill);
  }
  cache.gate.unlock();
  return_spill(spill);
  return verdict;
}

// Another thread's block. What the mark says is only advice, for an early answer to a second free; the owner decides by the serial.
BlockVerdict Pool::send_home(ThreadCache& owner, BlockEntry* entry, const Block& block) noexcept {
  const auto mark = static_cast<std::uint32_t>(block.serial);
  if (mark != 0 && entry->mark.load() == mark) return BlockVerdict::double_free;
  entry->mark.store(mark);
  if (!owner.inbox.put({block.serial, entries_.number(entry), static_cast<std::uint32_t>(block.bytes)})) {
    entry->mark.store(0);
    return free_under_lock(entry, block, When::later);
  }
  return BlockVerdict::ok;
}

// Takes in what other threads have sent home, and only now counts it as freed. At most one inbox full: others may be sending all the
// while. REQUIRES: the caller is inside the gate, or has shut it.
void Pool::read_inbox(ThreadCache& cache, Spill& spill, IntoBins into_bins) noexcept {
  for (std::uint32_t n = 0; n < Inbox::kEntries; ++n) {
    const Inbox::Message message = cache.inbox.get();
    if (message.serial == 0) return;
    BlockEntry* const entry = &entries_[message.entry];
    entry->mark.store(0);
    if (entry->serial.load() != message.serial) {
      // Two threads freed it at the same moment, and both were told yes; this is the second.
      late_double_frees_.fetch_add(1, std::memory_order_relaxed);
      continue;
    }
    entry->serial.store(0);
    cache.count_free(message.bytes);
    cache.make_untouchable(entry, message.bytes);
    Bin& bin = cache.bins[entry->size_class()];
    if (into_bins == IntoBins::no || !bin.push(entry)) cache.give_up(entry, spill);
  }
}

}  // namespace berth
