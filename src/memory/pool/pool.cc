// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/pool.h"

#include <algorithm>
#include <new>

#include "base/text.h"
#include "berth/base/checked.h"
#include "berth/base/units.h"
#include "berth/device/backend.h"
#include "berth/device/registry.h"
#include "berth/record/misuse.h"
#include "memory/process_budget.h"
#include "os/memory/memory.h"

namespace berth::internal::memory {

namespace {

// What pages are moved and committed in: on hosts whole huge pages, where there are some.
std::size_t page_of(const Backend& backend, std::size_t limit_bytes) noexcept {
  const std::size_t unit = backend.properties().unit_bytes;
  const std::size_t huge = backend.properties().abilities.host_access ? os::huge_page_bytes() : 0;
  return limit_bytes / 16 >= huge ? std::max(unit, huge) : unit;  // a tight limit is not to be spent on round numbers
}

// As much as can be taken again in a hundredth of the period.
std::size_t most_decay(const Backend& backend, std::chrono::milliseconds period) noexcept {
  if (period.count() == 0 || period == PoolOptions::kNever) return SIZE_MAX;
  const auto mib =
      static_cast<double>(period.count()) * 10 / static_cast<double>(std::max<std::size_t>(backend.properties().commit_us_per_mib, 1));
  return static_cast<std::size_t>(std::clamp(mib, 2.0, 0x1p40) * 1_MiB);
}

// The bound at which pages move. On devices in pieces a little lower than the target: found by trying, on the recorded programs, where 0.8 gave
// resnet_train 1.0086 and 1 gave it 1.0101.
double tight_of(const Backend& backend, double target_ratio) noexcept {
  return backend.properties().piece_bytes == 0 ? target_ratio : 1 + (target_ratio - 1) * 0.8;
}

}  // namespace

Pool::Pool(Device device, const PoolOptions& options)
    : Pool(berth::backend(device), {.options = options,
                                    .page_bytes = page_of(berth::backend(device), options.limit_bytes),
                                    .below = &process_budget(berth::backend(device))}) {}

Pool::Pool(Backend& device_backend, Setup setup)
    : Allocator(device_backend),
      classes_(backend().properties().alignment),
      small_limit_(classes_.count() == 0 ? 0 : kSmallLimit),
      usual_alignment_(backend().properties().alignment),
      parent_(std::move(setup.parent)),
      fixed_pages_(setup.fixed_pages),
      page_bytes_(setup.page_bytes),
      budget_(is_private() ? kOverPrivateLimit : kOverLimit, setup.options.limit_bytes, setup.below),
      decay_period_(setup.options.decay),
      target_ratio_(setup.options.target_ratio),
      generation_(os::fork_generation()),
      caches_(new std::atomic<ThreadCache*>[kMostCaches]()),
      decay_(setup.options.decay, most_decay(backend(), setup.options.decay)),
      space_(backend(), mutex_,
             {.page_bytes = setup.page_bytes,
              .fixed_pages = setup.fixed_pages,
              .tight = tight_of(backend(), setup.options.target_ratio),
              .tighter_edges = setup.options.target_ratio + 0.004},
             budget_, decay_, parent_.get()),
      slabs_(classes_, space_, entries_, streams_) {
  listen();
}

// Buffers keep their allocator alive, so live blocks here were leaked by a user of bare ones. Their memory stays: it may still be used.
Pool::~Pool() {
  stop_listening();  // before the lock: a fork holds the list while it waits for the locks
  const os::Lock lock(mutex_);
  const bool usable = !is_inherited() && backend().is_alive();
  for_each_cache([&](ThreadCache& cache) BERTH_NO_THREAD_ANALYSIS {
    if (usable) flush(cache);
    count_bytes(cache);
  });
  if (counted().live() == 0 && usable) close_in_turn();
  for_each_cache([](ThreadCache& cache) { delete &cache; });
  if (!usable) budget_.give_up(space_.figures().committed);  // whoever has that memory now, it is not this process
  slabs_.close();
}

bool Pool::is_inherited() const noexcept { return generation_ != os::fork_generation() && !backend().properties().abilities.fork_safe; }

Status Pool::ready(StreamRef stream, std::uint32_t& index) noexcept {
  if (base() == nullptr) {
    if (holds_.any()) return Failure{ErrorCode::busy, 0, "the pool is empty, and its device is held"};
    const Status opened = space_.open();
    if (!opened) return opened;
  }
  if (base() == nullptr) {  // space_.open lets go of the lock: another thread may have come this far
    if (const Status done = entries_.open(space_.size_bytes()); !done) return done;
    if (const Status done = slabs_.open(space_.size_bytes()); !done) return done;
    base_.store(reinterpret_cast<std::uintptr_t>(space_.base()));
  }
  index = streams_.find(stream);
  if (index < ready_streams_ && (index != 0 || !stream)) return {};  // nearly always
  if (stream && index == 0) {
    if (!holds_.any()) retire_streams();
    index = streams_.find(stream);  // another thread may have been here meanwhile
    if (index == 0) index = streams_.add(stream);
    if (index == 0) return kNoTables;
  }
  if (!slabs_.add_stream(index) || !space_.add_stream(index)) return kNoTables;
  ready_streams_ = std::max(ready_streams_, index + 1);  // both have made room for all up to it
  return {};
}

Failure Pool::refused(const Failure& failure) noexcept {
  ++failures_;
  return failure;
}

void Pool::count_allocation(std::size_t bytes) noexcept {
  in_use_ += static_cast<std::int64_t>(bytes);
  peak_in_use_ = std::max(peak_in_use_, in_use_);
  ++counts_.allocations;
}

void Pool::count_free(std::size_t bytes) noexcept {
  in_use_ -= static_cast<std::int64_t>(bytes);
  ++counts_.frees;
}

// Takes over the bytes that a cache has counted: all that a peak needs. REQUIRES: the caller is its owner, or has shut the gates.
void Pool::count_bytes(ThreadCache& cache) const noexcept {
  peak_in_use_ = std::max(peak_in_use_, in_use_ + cache.peak_in_use());
  in_use_ += cache.in_use();
  cache.forget_bytes();
}

bool Pool::was_issued(std::uint64_t serial) const noexcept {
  const std::uint64_t number = serial >> ThreadCache::kSerialShift;
  return serial != 0 && number <= cache_count_.load(std::memory_order_relaxed);
}

// REQUIRES: the entry's owner is the caller, or the answer is taken as a guess.
BlockVerdict Pool::judge(const BlockEntry* entry, const Block& block) const noexcept {
  const std::uint64_t serial = entry->serial.load();
  if (entry->offset() != static_cast<std::size_t>(static_cast<std::byte*>(block.data) - base()))
    return was_issued(block.serial) && serial != block.serial ? BlockVerdict::double_free : BlockVerdict::foreign;
  if (serial == 0 || serial != block.serial) return was_issued(block.serial) ? BlockVerdict::double_free : BlockVerdict::foreign;
  if (!entry->is_of(block.allocator_id)) return BlockVerdict::foreign;
  const std::uint32_t mark = entry->mark.load();
  if (mark != 0 && mark == static_cast<std::uint32_t>(serial)) return BlockVerdict::double_free;  // another thread has sent it home
  return entry->small_bytes() == block.bytes ? BlockVerdict::ok : BlockVerdict::size_mismatch;
}

void Pool::complete(Block& known, const Block& block, const BlockEntry* entry) const noexcept {
  known = block;
  known.serial = entry->serial.load();
  known.tag = entry->tag();
  known.cookie = EntryRange::cookie(entry);
  if (known.alignment == 0) known.alignment = usual_alignment_;
}

// The entry of a block that came from outside, or nullptr. One made by block_at, of which only the address is known, is given its serial.
BlockEntry* Pool::find_entry(Block& block) const noexcept {
  if (block.serial != 0) return entries_.range().find(block.cookie);
  const os::Lock lock(mutex_);
  const auto offset = static_cast<std::size_t>(static_cast<std::byte*>(block.data) - base());
  BlockEntry* const entry = base() != nullptr && offset < space_.size_bytes() ? slabs_.at(offset) : nullptr;
  if (entry != nullptr) block.serial = entry->serial.load();
  return entry;
}

BlockVerdict Pool::give_back_slowly(Block block, When when, Block* known) noexcept {
  BlockEntry* const entry = find_entry(block);
  if (entry == nullptr) return BlockVerdict::foreign;
  report_late_double_frees();
  if (known != nullptr) complete(*known, block, entry);
  if (entry->is_large()) return free_large(entry, block, when);
  const BlockVerdict verdict = judge(entry, block);
  if (verdict != BlockVerdict::ok) return verdict;
  return entry->has_extra_uses() || when == When::now || is_inherited() ? free_under_lock(entry, block, when) : free_small(entry, block);
}

// A small block that no cache owns, or that must not wait for its owner.
BlockVerdict Pool::free_under_lock(BlockEntry* entry, const Block& block, When when) noexcept {
  const os::Lock lock(mutex_);
  const std::size_t begin = entry->offset();
  const SizeClass size_class = entry->size_class();
  {
    const AllShut shut(*this);
    if (const std::uint32_t owner = entry->owner(); owner != 0) {
      ThreadCache& cache = *caches_[owner].load(std::memory_order_relaxed);
      Spill spill;
      read_inbox(cache, spill, IntoBins::no);
      return_to_slabs(spill.entries());
      count_bytes(cache);
    }
    const BlockVerdict verdict = judge(entry, block);
    if (verdict != BlockVerdict::ok) return verdict;
    entry->serial.store(0);
    count_free(block.bytes);
    if (is_inherited()) return BlockVerdict::ok;  // a child leaves the device, and what is on it, alone
    entry->kind.store(entry->kind.load() & ~BlockEntry::kExtraUses);
    if (extra_.empty() || !extra_.free(entries_.number(entry), streams_)) {
      if (poisons() && slabs_.stream_at(begin) == 0) poison(block.data, block.bytes);
      slabs_.give(entry);
    }
    if (when == When::now) flush_class(size_class);
  }
  if (when == When::now) give_pages_back(begin, classes_[size_class].bytes);
  return BlockVerdict::ok;
}

void Pool::give_pages_back(std::size_t begin, std::size_t bytes) noexcept {
  if (holds_.any()) {
    trim_after_hold_ = true;
    return;
  }
  settle_streams(true);
  space_.trim_around(begin, bytes);
}

void Pool::report_late_double_frees() noexcept {
  if (late_double_frees_.load(std::memory_order_relaxed) == 0) [[likely]]
    return;
  for (std::uint32_t n = late_double_frees_.exchange(0, std::memory_order_relaxed); n > 0; --n)
    report_misuse(
        {.kind = MisuseKind::double_free, .allocator = "pool", .device = device().key(), .address = nullptr, .bytes = 0, .tag = {}});
}

void Pool::shut_caches() const noexcept {
  for_each_cache([](ThreadCache& cache) { cache.gate.close(); });
  os::fence_all_threads();
  for_each_cache([](ThreadCache& cache) { cache.gate.drain(); });
  os::fence_all_threads();
}

void Pool::reopen_caches() const noexcept {
  os::fence_all_threads();
  for_each_cache([](ThreadCache& cache) {
    if (cache.retired.load() == 0 || cache.gate.is_spin_lock()) cache.gate.open();
  });
}

// REQUIRES: the caller is the cache's owner, or has shut the gates.
void Pool::flush(ThreadCache& cache) noexcept {
  Spill spill;
  read_inbox(cache, spill, IntoBins::no);
  return_to_slabs(spill.entries());
  for (SizeClass c = 0; c < classes_.count(); ++c) flush_bin(cache, c);
  end_keeping(cache);
}

void Pool::flush_bin(ThreadCache& cache, SizeClass size_class) noexcept {
  Bin& bin = cache.bins[size_class];
  return_to_slabs(bin.entries());
  cache.from_slabs -= bin.count();
  bin.remove_first(bin.count());
}

void Pool::flush_caches() noexcept {
  const AllShut shut(*this);
  for_each_cache([&](ThreadCache& cache) BERTH_NO_THREAD_ANALYSIS { flush(cache); });
}

// REQUIRES: the gates are shut.
void Pool::flush_class(SizeClass size_class) noexcept {
  for_each_cache([&](ThreadCache& cache) BERTH_NO_THREAD_ANALYSIS { flush_bin(cache, size_class); });
}

void Pool::retire(ThreadCache* cache) noexcept {
  const os::Lock lock(mutex_);
  count_bytes(*cache);
  flush(*cache);
  cache->owned = false;
}

// The child has one thread; the caches of the others are nobody's, and what is in them is everyone's.
void Pool::after_fork(bool in_child) noexcept BERTH_NO_THREAD_ANALYSIS {
  for_each_cache([&](ThreadCache& cache) BERTH_NO_THREAD_ANALYSIS {
    if (!in_child || !cache.owned || ThreadCaches::find_number(id(), cache.number) != nullptr) return;
    if (!is_inherited()) flush(cache);
    cache.owned = false;
  });
  if (in_child && is_inherited()) t_front = {};  // so that no request is served on the way that asks nothing
  reopen_caches();
}

void Pool::trim(std::size_t keep_bytes) {
  const os::Lock lock(mutex_);
  if (holds_.any() || is_inherited() || base() == nullptr) return;
  flush_caches();
  settle_streams(false);
  reserved_ = 0;
  space_.trim(keep_bytes);
}

void Pool::reserve(std::size_t bytes) {
  Status done;
  {
    const os::Lock lock(mutex_);
    std::uint32_t stream = 0;
    done = is_inherited() ? Status(Failure{ErrorCode::fork_unsafe, 0, "the pool was made before fork"}) : ready({}, stream);
    if (done) done = holds_.any() ? Status(Failure{ErrorCode::busy, 0, "the device is held"}) : space_.reserve(bytes);
    if (done) reserved_ = std::max(reserved_, space_.figures().live + bytes);
  }
  if (!done) throw_refused({.bytes = bytes}, done.failure());
}

void Pool::begin_hold() noexcept {
  const os::Lock lock(mutex_);
  holds_.begin();
}

void Pool::end_hold() noexcept {
  const os::Lock lock(mutex_);
  if (!holds_.end() || !trim_after_hold_) return;
  trim_after_hold_ = false;
  flush_caches();
  settle_streams(true);
  space_.trim(0);
}

}  // namespace berth::internal::memory

namespace berth {

using namespace internal;
using namespace internal::memory;

std::shared_ptr<Allocator> pool(Device device, const PoolOptions& options) {
  if (options.decay.count() < 0) {
    throw ArgumentError(ErrorCode::invalid_argument,
                        {text::join("a pool on ", device.to_string(), " with decay=", options.decay.count(), "ms"),
                         "memory cannot have been unused for less than no time", "use 0 to give back at once, or PoolOptions::kNever"},
                        {{"decay", options.decay.count()}});
  }
  if (!(options.target_ratio >= 1)) {
    throw ArgumentError(ErrorCode::invalid_argument, {text::join("a pool on ", device.to_string(), " with a target ratio below 1"),
                                                      "what is live is always committed", "use 1, or a little more"});
  }
  return enlisted(std::make_shared<Pool>(device, options));
}

}  // namespace berth
