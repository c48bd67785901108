// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/pool.h"

#include <algorithm>
#include <new>

#include "base/text.h"
#include "berth/base/checked.h"
#include "berth/base/units.h"
#include "berth/device/registry.h"
#include "berth/record/misuse.h"
#include "memory/holders.h"
#include "os/memory.h"

namespace berth {

namespace {

// What pages are moved and committed in: on hosts whole huge pages, where there are some.
std::size_t page_of(const Backend& backend, std::size_t limit_bytes) noexcept {
  const std::size_t unit = backend.properties().unit_bytes;
  const std::size_t huge = backend.properties().abilities.host_access ? os::huge_page_bytes() : 0;
  return limit_bytes / 16 >= huge ? std::max(unit, huge) : unit;  // a tight limit is not to be spent on round numbers
}

constexpr std::uint32_t kCounted = ~0U;  // a slot's mark while its messages are counted
constexpr Failure kNoHeap{ErrorCode::out_of_memory, 0, "no heap for the pool's tables"};

}  // namespace

template <class Visit>
void Pool::for_each_cache(Visit visit) const {
  for (std::uint32_t i = 1; i <= cache_count_.load(std::memory_order_relaxed); ++i) visit(*caches_[i].load(std::memory_order_relaxed));
}

class Pool::AllShut {
 public:
  explicit AllShut(const Pool& pool) noexcept : pool_(pool) { pool_.shut_caches(); }
  ~AllShut() { pool_.reopen_caches(); }
  AllShut(const AllShut&) = delete;
  AllShut& operator=(const AllShut&) = delete;

 private:
  const Pool& pool_;
};

Pool::Pool(Device device, const PoolOptions& options)
    : Allocator(berth::backend(device)),
      classes_(backend().properties().alignment),
      small_limit_(classes_.count() == 0 ? 0 : kSmallLimit),
      usual_alignment_(backend().properties().alignment),
      limit_bytes_(options.limit_bytes),
      generation_(os::fork_generation()),
      caches_(new std::atomic<ThreadCache*>[kMostCaches]()),
      space_(backend(), mutex_, {.limit_bytes = options.limit_bytes, .page_bytes = page_of(backend(), options.limit_bytes)}),
      slabs_(classes_, space_, slots_, streams_) {}

// Buffers keep their allocator alive, so live blocks here were leaked by a user of bare ones. Their memory stays: it may still be used.
Pool::~Pool() {
  const os::Lock lock(mutex_);
  for_each_cache([&](ThreadCache& cache) BERTH_NO_THREAD_ANALYSIS {
    count(cache);
    delete &cache;
  });
  if (allocations_ == frees_ && !is_inherited() && backend().is_alive()) space_.close();
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
  if (stream && index == 0) {
    retire_streams();
    index = streams_.find(stream);  // another thread may have been here meanwhile
    if (index == 0) index = streams_.add(stream);
    if (index == 0) return kNoHeap;
  }
  return slabs_.add_stream(index) && space_.add_stream(index) ? Status() : Status(kNoHeap);
}

Failure Pool::refused(const Failure& failure) noexcept {
  ++failures_;
  return failure;
}

// Asks how far the streams are that freed memory waits for, or waits for them; what they are done with becomes everyone's. Handles of
// streams and events are let go of without the lock: that may run anything.
void Pool::settle_streams(bool wait) noexcept {
  for (std::uint32_t i = 1; i < streams_.count(); ++i) {
    if (!streams_[i].is_pending()) continue;
    std::shared_ptr<StreamState> stream = streams_[i].stream;
    Event event = streams_[i].event;
    std::uint64_t ticket = streams_[i].event_ticket;
    const std::uint64_t latest = streams_[i].ticket;
    mutex_.unlock();
    bool done = false;
    try {
      if (ticket == 0 || wait) {
        event = stream->record();
        ticket = latest;
      }
      done = event.query();
      if (!done && wait) {
        done = true;  // also when the work has thrown: it is over
        event.wait();
      }
    } catch (...) {  // a stream that cannot be asked proves nothing; a third party's may throw anything
    }
    mutex_.lock();
    StreamUses::Use& use = streams_[i];
    if (use.stream == stream) {
      if (done && ticket > use.done) {
        use.done = ticket;
        space_.clean(i, ticket);
      }
      use.event_ticket = done ? 0 : ticket;
      std::swap(use.event, event);  // a done one is of no use, and of no harm
    }
    mutex_.unlock();
    event = {};
    stream = nullptr;
    mutex_.lock();
  }
}

// Frees the numbers of streams that nobody else has any more and whose work is done.
void Pool::retire_streams() noexcept {
  for (std::uint32_t i = 1; i < streams_.count(); ++i) {
    if (!streams_[i].is_ours_alone()) continue;
    std::shared_ptr<StreamState> stream = streams_[i].stream;
    bool has_last = streams_[i].has_last;
    Event last = streams_[i].last;
    mutex_.unlock();
    bool done = false;
    try {
      if (!has_last) last = stream->record();
      has_last = true;
      done = last.query();
    } catch (...) {  // as above
    }
    mutex_.lock();
    StreamUses::Use gone;
    if (streams_[i].stream == stream) {
      streams_[i].has_last = has_last;
      std::swap(streams_[i].last, last);
      if (done) {
        retire_caches(i);
        space_.clean(i, streams_[i].ticket);
        gone = streams_.remove(i);
      }
    }
    mutex_.unlock();
    gone = {};
    last = {};
    stream = nullptr;
    mutex_.lock();
  }
}

// What is in the caches of a stream goes back to the slabs, and no thread finds them any more: their gates stay shut.
void Pool::retire_caches(std::uint32_t stream) noexcept {
  const AllShut shut(*this);
  for_each_cache([&](ThreadCache& cache) BERTH_NO_THREAD_ANALYSIS {
    if (cache.stream != stream) return;
    count(cache);
    flush(cache);
    cache.retired.store(1);
  });
}

void Pool::count_allocation(std::size_t bytes) noexcept {
  in_use_ += static_cast<std::int64_t>(bytes);
  peak_in_use_ = std::max(peak_in_use_, in_use_);
  ++allocations_;
}

void Pool::count_free(std::size_t bytes) noexcept {
  in_use_ -= static_cast<std::int64_t>(bytes);
  ++frees_;
}

// Takes over what a cache has counted. REQUIRES: the caller is its owner, or has shut the gates.
void Pool::count(ThreadCache& cache) const noexcept {
  peak_in_use_ = std::max(peak_in_use_, in_use_ + cache.counts.peak());
  in_use_ += cache.counts.in_use();
  frees_ += cache.counts.frees();
  allocations_ += cache.serial - cache.counted_serial;
  cache.counted_serial = cache.serial;
  cache.counts = {};
}

Status Pool::obtain_large(const Request& request, Block& block) noexcept {
  // Large blocks that are not so large still begin in a grain of their own, by which they are found.
  const auto rounded = try_align_up(request.bytes, request.bytes < kSlabGrain ? kSlabGrain : Space::kGrain);
  ThreadCache* const own = t_front.pool == id() ? t_front.cache : nullptr;
  const os::Lock lock(mutex_);
  if (own != nullptr) count(*own);
  if (!rounded) return refused({ErrorCode::out_of_memory, 0, "no address space is that large"});
  std::uint32_t stream = 0;
  Extent* extent = nullptr;
  Status done = ready(request.stream, stream);
  if (done) {
    done = with_effort([&](Space::Effort effort) BERTH_NO_THREAD_ANALYSIS {
      const Result<Extent*> taken = space_.take(Space::Part::large, *rounded, std::max(request.alignment, Space::kGrain), stream, effort);
      if (taken) extent = *taken;
      return taken ? Status() : Status(taken.failure());
    });
  }
  const std::uint32_t number = done ? slots_.take(SlotTable::kLarge, 1) : 0;
  if (done && number == 0) {
    space_.give(extent, stream, streams_.next_ticket(stream));
    done = kNoHeap;
  }
  if (!done) return refused(done.failure());
  extent->slot = number;
  extent->stream = stream;
  extent->requested = request.bytes;
  Slot& slot = slots_[number];
  slot.set_where(extent->begin, 0);
  slot.tag_and_id.store(request.allocator_id << 16 | request.tag.id());
  slot.size.store(extent->index << 8 | Slot::kLargeClass);
  slot.serial.store(++serial_);
  slabs_.enter_large(extent->begin, number);
  count_allocation(request.bytes);
  block.data = space_.base() + extent->begin;
  block.serial = serial_;
  block.place = SlotRange::place(&slot);
  return {};
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
  if (slot->tag_and_id.load() >> 16 != block.allocator_id) return Freed::foreign;
  const std::uint32_t mark = slot->mark.load();
  if (mark != 0 && mark == static_cast<std::uint32_t>(serial)) return Freed::double_free;  // another thread has sent it home
  return bytes_of(slot) == block.bytes ? Freed::yes : Freed::size_mismatch;
}

// REQUIRES: as judge. A large block's extent is looked up under the lock only, by free_large.
std::size_t Pool::bytes_of(const Slot* slot) const noexcept { return slot->size.load() >> 8; }

void Pool::complete(Block& known, const Block& block, const Slot* slot) const noexcept {
  known = block;
  known.serial = slot->serial.load();
  known.tag = Tag::from_id(static_cast<std::uint16_t>(slot->tag_and_id.load()));
  known.place = SlotRange::place(slot);
  if (known.alignment == 0) known.alignment = usual_alignment_;
}

Allocator::Freed Pool::give_back_slowly(Block block, When when, Block* known) noexcept {
  Slot* slot = slots_.range().find(block.place);
  if (block.serial == 0) {  // made by block_at: only its address is known
    const os::Lock lock(mutex_);
    const auto offset = static_cast<std::size_t>(static_cast<std::byte*>(block.data) - base());
    slot = base() != nullptr && offset < space_.size_bytes() ? slabs_.at(offset) : nullptr;
    if (slot != nullptr) block.serial = slot->serial.load();
  }
  if (slot == nullptr) return Freed::foreign;
  report_late_double_frees();
  if (known != nullptr) complete(*known, block, slot);
  if ((slot->size.load() & 0xff) == Slot::kLargeClass) return free_large(slot, block, when);
  const Freed verdict = judge(slot, block);
  if (verdict != Freed::yes) return verdict;
  if (is_inherited()) return Freed::yes;  // a child leaves the device alone
  return when == When::now ? free_under_lock(slot, block, when) : free_small(slot, block);
}

Allocator::Freed Pool::free_large(Slot* slot, const Block& block, When when) noexcept {
  ThreadCache* const own = t_front.pool == id() ? t_front.cache : nullptr;
  const os::Lock lock(mutex_);
  if (own != nullptr) count(*own);
  const std::uint32_t size = slot->size.load();
  Extent* const extent = (size & 0xff) == Slot::kLargeClass ? space_.extent(size >> 8) : nullptr;
  const std::uint64_t serial = slot->serial.load();
  if (extent == nullptr || serial == 0 || serial != block.serial) return was_issued(block.serial) ? Freed::double_free : Freed::foreign;
  if (space_.base() + extent->begin != block.data) return Freed::foreign;
  if (slot->tag_and_id.load() >> 16 != block.allocator_id) return Freed::foreign;
  if (extent->requested != block.bytes) return Freed::size_mismatch;
  slot->serial.store(0);
  count_free(block.bytes);
  const std::size_t begin = extent->begin;
  const std::size_t bytes = extent->bytes;
  slabs_.leave_large(begin);
  slots_.give_back(SlotTable::kLarge, slots_.number(slot));
  if (is_inherited()) return Freed::yes;
  space_.give(extent, extent->stream, streams_.next_ticket(extent->stream));
  if (when == When::now) give_pages_back(begin, bytes);
  return Freed::yes;
}

// A small block that no cache owns, or that must not wait for its owner.
Allocator::Freed Pool::free_under_lock(Slot* slot, const Block& block, When when) noexcept {
  const os::Lock lock(mutex_);
  const std::size_t begin = slot->offset();
  const SizeClass size_class = slot->size.load() & 0xff;
  {
    const AllShut shut(*this);
    if (const std::uint32_t owner = slot->owner(); owner != 0) {
      ThreadCache& cache = *caches_[owner].load(std::memory_order_relaxed);
      Spill spill;
      read_inbox(cache, spill, IntoBins::no);
      return_to_slabs(spill.slots());
      count(cache);
    }
    const Freed verdict = judge(slot, block);
    if (verdict != Freed::yes) return verdict;
    slot->serial.store(0);
    count_free(block.bytes);
    slabs_.give(slot);
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
  for (Bin& bin : cache.bins) {
    return_to_slabs(std::span(bin.items).first(bin.count));
    bin.count = 0;
  }
}

void Pool::flush_caches() noexcept {
  const AllShut shut(*this);
  for_each_cache([&](ThreadCache& cache) BERTH_NO_THREAD_ANALYSIS { flush(cache); });
}

// REQUIRES: the gates are shut.
void Pool::flush_class(SizeClass size_class) noexcept {
  for_each_cache([&](ThreadCache& cache) BERTH_NO_THREAD_ANALYSIS {
    Bin& bin = cache.bins[size_class];
    return_to_slabs(std::span(bin.items).first(bin.count));
    bin.count = 0;
  });
}

void Pool::retire(ThreadCache* cache) noexcept {
  const os::Lock lock(mutex_);
  count(*cache);
  flush(*cache);
  cache->owned = false;
}

void Pool::before_fork() noexcept BERTH_NO_THREAD_ANALYSIS { shut_caches(); }

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
  space_.trim(keep_bytes);
}

void Pool::reserve(std::size_t bytes) {
  Status done;
  {
    const os::Lock lock(mutex_);
    std::uint32_t stream = 0;
    done = is_inherited() ? Status(Failure{ErrorCode::fork_unsafe, 0, "the pool was made before fork"}) : ready({}, stream);
    if (done) done = holds_.any() ? Status(Failure{ErrorCode::busy, 0, "the device is held"}) : space_.reserve(bytes);
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

Stats Pool::stats() const {
  const os::Lock lock(mutex_);
  const AllShut shut(*this);
  return stats_now();
}

// REQUIRES: the gates are shut.
Stats Pool::stats_now() const noexcept {
  std::size_t on_the_way = 0;  // freed, and on their way home
  std::uint64_t frees = 0;
  for_each_cache([&](ThreadCache& cache) BERTH_NO_THREAD_ANALYSIS {
    count(cache);
    cache.inbox.for_each([&](const Inbox::Message& message) {
      Slot& slot = slots_[message.slot];
      if (slot.serial.load() != message.serial || slot.mark.load() == kCounted) return;  // the second of two frees at the same moment
      slot.mark.store(kCounted);
      on_the_way += message.bytes;
      ++frees;
    });
    cache.inbox.for_each([&](const Inbox::Message& message) {
      if (slots_[message.slot].mark.load() == kCounted) slots_[message.slot].mark.store(static_cast<std::uint32_t>(message.serial));
    });
  });
  const Space::Figures& figures = space_.figures();
  const std::size_t in_use = static_cast<std::size_t>(in_use_) - on_the_way;
  return {.in_use_bytes = in_use,
          .cached_bytes = figures.committed - in_use,
          .committed_bytes = figures.committed,
          .peak_in_use_bytes = static_cast<std::size_t>(peak_in_use_),
          .peak_committed_bytes = figures.peak_committed,
          .live_blocks = allocations_ - frees_ - frees,
          .allocations = allocations_,
          .frees = frees_ + frees,
          .failures = failures_,
          .commits = figures.commits,
          .decommits = figures.decommits};
}

std::string Pool::settings() const {
  const std::string limit = limit_bytes_ == SIZE_MAX ? "" : text::join(", at most ", text::bytes(limit_bytes_));
  return text::join("pool on ", device().to_string(), limit);
}

template <class Visit>
void Pool::for_each_live(Visit visit) const {
  for (std::uint32_t number = 1; number <= slots_.used(); ++number) {
    const Slot& slot = slots_[number];
    const std::uint64_t serial = slot.serial.load();
    const std::uint32_t mark = slot.mark.load();
    // One that another thread has sent home is freed, though its owner does not know yet.
    if (serial == 0 || (mark != 0 && mark == static_cast<std::uint32_t>(serial))) continue;
    const std::uint32_t size = slot.size.load();
    const bool large = (size & 0xff) == Slot::kLargeClass;
    visit(slot, large ? space_.extent(size >> 8)->requested : size >> 8);
  }
}

void Pool::explain(const Failure& failure, OutOfMemoryReport& report) const {
  std::vector<Holder> holders;
  const os::Lock lock(mutex_);
  const AllShut shut(*this);
  const Stats now = stats_now();
  for_each_live([&](const Slot& slot, std::size_t bytes) {
    add_holder(holders, Tag::from_id(static_cast<std::uint16_t>(slot.tag_and_id.load())), bytes);
  });
  report.in_use_bytes = now.in_use_bytes;
  report.cached_bytes = now.cached_bytes;
  report.largest_free_run_bytes = space_.longest_cached();
  report.top_holders = top_holders(std::move(holders));
  const std::size_t below_limit = limit_bytes_ - std::min(limit_bytes_, now.committed_bytes);
  const bool limited = below_limit < report.device_free_bytes;
  report.refused_by = limited ? text::join("the pool's limit of ", text::bytes(limit_bytes_)) : "the device";
  if (limited) report.limit_bytes = limit_bytes_;
  // Free pages can be moved together, so all that is cached counts.
  const std::size_t within_reach = std::min(below_limit, report.device_free_bytes) + space_.cached_bytes();
  if (within_reach < report.requested_bytes) report.would_be_enough_bytes = report.requested_bytes - within_reach;
  report.tried.emplace_back("looked for a free run, in all caches");
  report.tried.emplace_back("moved every free page");
  report.tried.emplace_back(text::join("asked the device: ", failure.why));
}

std::string Pool::audit() const {
  const os::Lock lock(mutex_);
  if (base() == nullptr) return {};
  const AllShut shut(*this);
  return audit_now();
}

std::string Pool::audit_now() const {
  if (std::string wrong = space_.audit(); !wrong.empty()) return wrong;
  if (std::string wrong = slabs_.audit(); !wrong.empty()) return wrong;
  for (std::uint32_t i = 1; i <= cache_count_.load(std::memory_order_relaxed); ++i) {
    if (std::string wrong = audit_cache(*caches_[i].load(std::memory_order_relaxed)); !wrong.empty()) return wrong;
  }
  const Stats now = stats_now();
  std::size_t bytes = 0;
  std::uint64_t blocks = 0;
  for_each_live([&](const Slot&, std::size_t live) {
    bytes += live;
    ++blocks;
  });
  if (bytes != now.in_use_bytes) return "pool: bytes in use are not the sum of the live blocks";
  if (blocks != now.live_blocks) return "pool: live blocks are not those the slots say";
  if (now.in_use_bytes > now.committed_bytes) return "pool: more is in use than is committed";
  return {};
}

std::string Pool::audit_cache(const ThreadCache& cache) const {
  std::size_t granted = 0;
  for (SizeClass c = 0; c < classes_.count(); ++c) {
    const Bin& bin = cache.bins[c];
    granted += bin.capacity * std::size_t{classes_[c].bytes};
    if (bin.count > bin.capacity || bin.capacity > Bin::kMost) return "pool: a bin holds more than it may";
    for (const Slot* const slot : std::span(bin.items).first(bin.count)) {
      if (slot->owner() != cache.number || slot->serial.load() != 0) return "pool: a bin holds a block that is live, or another's";
      if ((slot->size.load() & 0xff) != c) return "pool: a bin holds a block of another class";
    }
  }
  return granted + cache.budget == ThreadCache::kBudget ? "" : "pool: the bins' capacities and what is left of the budget do not add up";
}

std::shared_ptr<Allocator> pool(Device device, const PoolOptions& options) { return std::make_shared<Pool>(device, options); }

}  // namespace berth
