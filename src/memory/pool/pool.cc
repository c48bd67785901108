// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/pool.h"

#include <algorithm>
#include <new>

#include "base/text.h"
#include "berth/base/checked.h"
#include "berth/base/units.h"
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
      budget_(is_private() ? kPrivateLimit : "the pool's limit", setup.options.limit_bytes, setup.below),
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
      slabs_(classes_, space_, slots_, streams_) {
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
    if (const Status done = slots_.open(space_.size_bytes()); !done) return done;
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

// REQUIRES: the slot's owner is the caller, or the answer is taken as a guess.
Allocator::Freed Pool::judge(const Slot* slot, const Block& block) const noexcept {
  const std::uint64_t serial = slot->serial.load();
  if (slot->offset() != static_cast<std::size_t>(static_cast<std::byte*>(block.data) - base()))
    return was_issued(block.serial) && serial != block.serial ? Freed::double_free : Freed::foreign;
  if (serial == 0 || serial != block.serial) return was_issued(block.serial) ? Freed::double_free : Freed::foreign;
  if (!slot->is_of(block.allocator_id)) return Freed::foreign;
  const std::uint32_t mark = slot->mark.load();
  if (mark != 0 && mark == static_cast<std::uint32_t>(serial)) return Freed::double_free;  // another thread has sent it home
  return slot->small_bytes() == block.bytes ? Freed::yes : Freed::size_mismatch;
}

void Pool::complete(Block& known, const Block& block, const Slot* slot) const noexcept {
  known = block;
  known.serial = slot->serial.load();
  known.tag = slot->tag();
  known.place = SlotRange::place(slot);
  if (known.alignment == 0) known.alignment = usual_alignment_;
}

// The slot of a block that came from outside, or nullptr. One made by block_at, of which only the address is known, is given its serial.
Slot* Pool::find_slot(Block& block) const noexcept {
  if (block.serial != 0) return slots_.range().find(block.place);
  const os::Lock lock(mutex_);
  const auto offset = static_cast<std::size_t>(static_cast<std::byte*>(block.data) - base());
  Slot* const slot = base() != nullptr && offset < space_.size_bytes() ? slabs_.at(offset) : nullptr;
  if (slot != nullptr) block.serial = slot->serial.load();
  return slot;
}

Allocator::Freed Pool::give_back_slowly(Block block, When when, Block* known) noexcept {
  Slot* const slot = find_slot(block);
  if (slot == nullptr) return Freed::foreign;
  report_late_double_frees();
  if (known != nullptr) complete(*known, block, slot);
  if (slot->is_large()) return free_large(slot, block, when);
  const Freed verdict = judge(slot, block);
  if (verdict != Freed::yes) return verdict;
  return slot->has_extra_uses() || when == When::now || is_inherited() ? free_under_lock(slot, block, when) : free_small(slot, block);
}

// A small block that no cache owns, or that must not wait for its owner.
Allocator::Freed Pool::free_under_lock(Slot* slot, const Block& block, When when) noexcept {
  const os::Lock lock(mutex_);
  const std::size_t begin = slot->offset();
  const SizeClass size_class = slot->size_class();
  {
    const AllShut shut(*this);
    if (const std::uint32_t owner = slot->owner(); owner != 0) {
      ThreadCache& cache = *caches_[owner].load(std::memory_order_relaxed);
      Spill spill;
      read_inbox(cache, spill, IntoBins::no);
      return_to_slabs(spill.slots());
      count_bytes(cache);
    }
    const Freed verdict = judge(slot, block);
    if (verdict != Freed::yes) return verdict;
    slot->serial.store(0);
    count_free(block.bytes);
    if (is_inherited()) return Freed::yes;  // a child leaves the device, and what is on it, alone
    slot->kind.store(slot->kind.load() & ~Slot::kExtraUses);
    if (extra_.empty() || !extra_.free(slots_.number(slot), streams_)) {
      if (poisons() && slabs_.stream_at(begin) == 0) poison(block.data, block.bytes);
      slabs_.give(slot);
    }
    if (when == When::now) flush_class(size_class);
  }
  if (when == When::now) give_pages_back(begin, classes_[size_class].bytes);
  return Freed::yes;
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
  return_to_slabs(spill.slots());
  for (SizeClass c = 0; c < classes_.count(); ++c) flush_bin(cache, c);
  end_keeping(cache);
}

void Pool::flush_bin(ThreadCache& cache, SizeClass size_class) noexcept {
  Bin& bin = cache.bins[size_class];
  return_to_slabs(bin.slots());
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
