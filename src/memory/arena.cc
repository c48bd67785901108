// SPDX-License-Identifier: Apache-2.0
#include "berth/memory/arena.h"

#include <algorithm>
#include <cstdint>
#include <new>
#include <optional>
#include <vector>

#include "base/text.h"
#include "berth/base/checked.h"
#include "berth/device/backend.h"
#include "berth/device/registry.h"
#include "berth/memory/snapshot.h"
#include "memory/block_users.h"
#include "memory/device_refusal.h"
#include "memory/hold_count.h"
#include "memory/holders.h"
#include "memory/inherited.h"
#include "memory/judge.h"
#include "memory/process_budget.h"
#include "memory/usage.h"
#include "os/lock/mutex.h"
#include "os/process/fork.h"

namespace berth {

using namespace internal;
using namespace internal::memory;

namespace {

//     base_                          top_          committed()               capacity_
//       | block | gap | block | dead |   committed     |   reserved addresses    |
//
// After a trim, committed() may be below top_, behind the last live block.
class ArenaStrategy : public Arena {
 public:
  ArenaStrategy(Backend& device_backend, void* base, std::size_t capacity)
      : Arena(device_backend), base_(static_cast<std::byte*>(base)), capacity_(capacity), budget_(process_budget(device_backend)) {}

  // Releases the range after the streams' pending work in it. It never waits, because the last handle of an
  // arena may be dropped inside a stream's own work.
  ~ArenaStrategy() override {
    const auto release = [&device = backend(), &budget = budget_, base = base_, bytes = capacity_, committed = usage_.committed_bytes()] {
      (void)device.release(base, bytes).ok();
      budget.give_up(committed);
    };
    if (is_inherited() || !backend().is_alive()) {
      budget_.give_up(usage_.committed_bytes());
      return;
    }
    try {
      dirty_.add_all(users_);
    } catch (const std::bad_alloc&) {  // leaking the range is safer than releasing it under running work
      return;
    }
    dirty_.are_done(false) ? release() : (void)dirty_.enqueue_behind(release);
  }

  Status obtain(const Request& request, Block& block) noexcept override {
    if (is_inherited()) return Failure{ErrorCode::fork_unsafe, 0, "the arena was made before fork, on a device that does not survive it"};
    const os::Lock lock(mutex_);
    Status done = obtain_locked(request, block);
    if (!done) usage_.count_refusal();
    return done;
  }

  BlockVerdict give_back(const Block& block, When when, Block* known) noexcept override {
    {
      const os::Lock lock(mutex_);
      Entry* const entry = find(block.data);
      const BlockVerdict verdict = judge(entry, block, next_serial_);
      if (verdict != BlockVerdict::ok) return verdict;
      complete(known, block, entry->known());
      entry->live = false;
      ++changes_;
      usage_.count_free(entry->tag, entry->bytes);
      if (when == When::later || live_end() > entry->offset) return BlockVerdict::ok;
    }
    decommit_tail(0, true);
    return BlockVerdict::ok;
  }

  // Grows only the last block, up to the capacity. Committing releases the lock, so everything is checked again
  // after it.
  bool grow(Block& block, std::size_t bytes) noexcept override {
    if (is_inherited()) return false;
    const os::Lock lock(mutex_);
    std::uint64_t clean_since = 0;
    while (true) {
      Entry* const entry = find(block.data);
      if (entry == nullptr || !entry->live || entry->serial != block.serial || entry->bytes != block.bytes) return false;
      if (entry->allocator_id != block.allocator_id || entry != &entries_.back() || !fits(entry->offset, bytes, capacity_)) return false;
      if (entry->offset + bytes > committed()) {
        if (!commit_up_to(entry->offset + bytes)) return false;
        continue;
      }
      // As for a request, but without waiting.
      if (clean_since != resets_ && !dirty_.empty() && top_ < dirty_top_) {
        clean_since = resets_;
        if (!settle_dirty({}, false)) return false;
        continue;
      }
      usage_.count_growth(entry->tag, entry->bytes, bytes);
      entry->bytes = bytes;
      entry->serial = next_serial_++;
      top_ = entry->offset + bytes;
      block.bytes = bytes;
      block.serial = entry->serial;
      return true;
    }
  }

  Result<BlockVerdict> note_use(const Block& block, StreamRef stream) noexcept override {
    const os::Lock lock(mutex_);
    const Entry* const entry = find(block.data);
    const BlockVerdict verdict = judge(entry, block, next_serial_);
    if (verdict != BlockVerdict::ok) return verdict;
    ++changes_;
    return users_.add(stream) ? Result<BlockVerdict>(BlockVerdict::ok)
                              : Failure{ErrorCode::out_of_memory, 0, "no heap for the block's list of streams"};
  }

  Result<bool> locate(Block& block) noexcept override {
    const os::Lock lock(mutex_);
    return describe(find(block.data), block);
  }

  ArenaMark mark() const override {
    const os::Lock lock(mutex_);
    return {top_, entries_.size(), entries_.empty() ? 0 : entries_.back().serial};
  }

  void reset(ArenaMark mark) override {
    std::size_t live = 0;
    bool known = false;
    BlockUsers gone;  // destroyed without the lock
    {
      const os::Lock lock(mutex_);
      known = is_known(mark);
      if (known) {
        const auto since = entries_.begin() + static_cast<std::ptrdiff_t>(mark.blocks);
        live = static_cast<std::size_t>(std::count_if(since, entries_.end(), [](const Entry& e) { return e.live; }));
      }
      if (known && live == 0) {
        if (!users_.empty()) {
          dirty_.add_all(users_);
          dirty_top_ = std::max(dirty_top_, top_);
          ++resets_;
        }
        if (mark.blocks == 0) std::swap(users_, gone);
        entries_.resize(mark.blocks);
        top_ = mark.offset;
        return;
      }
    }
    if (!known) {
      throw ArgumentError(ErrorCode::invalid_argument,
                          {"resetting an arena to a mark", "the arena was reset to before that mark, or the mark is of another arena",
                           "take marks and reset to them in reverse order"});
    }
    throw AccessError(
        ErrorCode::busy,
        {"resetting an arena", text::join(live, " of its blocks are still live"), "free them, or drop the storages that use them, first"},
        {{"blocks", live}});
  }

  void trim(std::size_t keep_bytes) override { decommit_tail(keep_bytes, false); }

  void reserve(std::size_t bytes) override {
    Status done;
    {
      const os::Lock lock(mutex_);
      const auto wanted = try_add(top_, bytes);
      done = !wanted || *wanted > capacity_ ? Status(kFull) : commit_up_to(*wanted);
    }
    if (!done) throw_refused({.bytes = bytes}, done.failure());
  }

  void begin_hold() noexcept override {
    const os::Lock lock(mutex_);
    wait_for_growth();
    holds_.begin();
  }
  void end_hold() noexcept override {
    const os::Lock lock(mutex_);
    holds_.end();
  }

  std::span<const std::byte> range() const noexcept override { return {base_, capacity_}; }

  Stats stats() const override {
    const os::Lock lock(mutex_);
    return usage_.stats();
  }

  std::vector<Holder> holders() const override {
    std::vector<Holder> held;
    {
      const os::Lock lock(mutex_);
      held = usage_.holders();
    }
    return most_first(std::move(held));
  }

  // The bytes of dead blocks are listed as free, though they are reused only after a reset.
  void list_blocks(Snapshot& snapshot) const override {
    const os::Lock lock(mutex_);
    snapshot.has_blocks = true;
    snapshot.base = reinterpret_cast<std::uintptr_t>(base_);
    snapshot.range_bytes = snapshot.limit_bytes = capacity_;
    snapshot.page_bytes = backend().properties().unit_bytes;
    if (committed() != 0) snapshot.memory.push_back({0, committed()});
    std::size_t told = 0;
    const auto free_to = [&](std::size_t end) {
      if (end > told) snapshot.free.push_back({told, end - told, 0, FreeKind::anyone});
    };
    for (const Entry& entry : entries_) {
      if (!entry.live || entry.bytes == 0) continue;
      free_to(entry.offset);
      told = entry.offset + entry.bytes;
      snapshot.blocks.push_back({.offset = entry.offset,
                                 .bytes = entry.bytes,
                                 .requested = entry.bytes,
                                 .stream_id = entry.stream_id,
                                 .age_ns = 0,
                                 .tag = entry.tag.id(),
                                 .site = 0,
                                 .state = BlockState::live});
    }
    free_to(committed());
  }

  std::string name() const override { return "arena"; }
  std::string settings() const override { return text::join("arena of ", text::bytes(capacity_), " on ", device().to_string()); }

  void explain(const Failure& failure, OutOfMemoryReport& report) const override {
    const os::Lock lock(mutex_);
    report.in_use_bytes = usage_.in_use_bytes();
    report.cached_bytes = usage_.cached_bytes();
    report.largest_free_run_bytes = committed() - std::min(top_, committed());
    report.tried.emplace_back("cut from the end of the arena; freed blocks are reused only after a reset");
    name_device(failure, report);
    if (failure.cause == Refusal::pending_work) report.refused_by = kAtWork.why;
    if (failure.cause != Refusal::arena_full) return;
    report.limit_bytes = capacity_;
    report.refused_by = text::join("the arena's capacity of ", text::bytes(capacity_));
    const std::size_t padding = *try_align_up(top_, std::max<std::size_t>(report.alignment, 1)) - top_;
    const std::size_t left = capacity_ - std::min(top_ + padding, capacity_);
    report.would_be_enough_bytes = report.requested_bytes - std::min(report.requested_bytes, left);
  }

  std::string audit() const override {
    const os::Lock lock(mutex_);
    std::size_t end = 0;
    std::size_t live_bytes = 0;
    std::uint64_t live = 0;
    for (const Entry& entry : entries_) {
      if (entry.offset < end) return "arena: blocks overlap or are out of order";
      end = entry.offset + entry.bytes;
      live_bytes += entry.live ? entry.bytes : 0;
      live += entry.live ? 1 : 0;
    }
    if (end > top_ || top_ > capacity_ || live_end() > committed() || committed() > capacity_)
      return "arena: blocks <= top <= capacity, or live blocks <= committed <= capacity, does not hold";
    if (live_bytes != usage_.in_use_bytes() || live != usage_.live_blocks()) return "arena: the counts are not the sum of the live blocks";
    return usage_.audit("arena");
  }

 private:
  static constexpr Failure kFull{ErrorCode::out_of_memory, 0, "the arena's capacity", Refusal::arena_full};
  static constexpr Failure kAtWork{ErrorCode::out_of_memory, 0, "pending work of a stream uses memory that was reset",
                                   Refusal::pending_work};

  struct Entry {
    std::size_t offset;
    std::size_t bytes;
    std::size_t alignment;
    std::uint64_t serial;
    std::uint64_t stream_id;
    std::uint64_t allocator_id;  // the allocator that it must be freed through
    Tag tag;
    bool live;

    KnownBlock known() const noexcept {
      return {.bytes = bytes,
              .alignment = alignment,
              .serial = serial,
              .stream_id = stream_id,
              .allocator_id = allocator_id,
              .tag = tag,
              .live = live};
    }
  };

  bool is_inherited() const noexcept { return memory::is_inherited(origin_, backend()); }
  std::size_t committed() const noexcept BERTH_REQUIRES(mutex_) { return usage_.committed_bytes(); }

  // Whether the block before the mark is still the same.
  bool is_known(const ArenaMark& mark) const noexcept BERTH_REQUIRES(mutex_) {
    if (mark.blocks == 0) return mark.offset == 0;
    if (mark.blocks > entries_.size()) return false;
    const Entry& last = entries_[mark.blocks - 1];
    return last.serial == mark.last_serial && last.offset + last.bytes == mark.offset;
  }

  std::size_t unit() const noexcept { return backend().properties().unit_bytes; }

  // The end of the last live block.
  std::size_t live_end() const noexcept BERTH_REQUIRES(mutex_) {
    const auto last = std::find_if(entries_.rbegin(), entries_.rend(), [](const Entry& entry) { return entry.live; });
    return last == entries_.rend() ? 0 : last->offset + last->bytes;
  }

  // The end of what a block, or the work of a stream, may use. Releases the lock while it asks the streams:
  // their answer counts only if nothing was allocated, freed or used on another stream meanwhile.
  std::size_t used_end(bool wait) noexcept BERTH_REQUIRES(mutex_) {
    if (!dirty_.empty()) (void)settle_dirty({}, wait);
    const std::uint64_t changes = changes_;
    const bool done = live_end() == top_ || are_users_done(wait);
    const std::size_t used = done && changes == changes_ ? live_end() : top_;
    return dirty_.empty() ? used : std::max(used, dirty_top_);
  }

  bool are_users_done(bool wait) noexcept BERTH_REQUIRES(mutex_) {
    BlockUsers asked;
    try {
      asked = users_;
    } catch (const std::bad_alloc&) {
      return false;
    }
    return os::unlocked(mutex_, [&] {
      const bool done = asked.are_done(wait);
      asked = {};
      return done;
    });
  }

  // Decommits what is behind the last live block, but for so many bytes, once no stream's work uses it.
  void decommit_tail(std::size_t keep_bytes, bool wait) noexcept {
    if (is_inherited()) return;
    std::size_t from = 0;
    std::size_t to = 0;
    std::optional<os::NoFork> no_fork;  // from the moment that its streams have answered
    {
      const os::Lock lock(mutex_);
      std::size_t used = 0;
      do {  // nothing releases the lock between the answer and its use
        wait_for_growth();
        used = used_end(wait);
      } while (growing_);
      const std::size_t keep = try_add(used, keep_bytes).value_or(capacity_);
      from = try_align_up(keep, unit()).value_or(capacity_);
      to = committed();
      if (holds_.any() || from >= to) return;
      no_fork.emplace(no_fork_during_calls(backend()), os::NoFork::Wait::no);
      usage_.begin_decommit(to - from);  // at once: no request may use what is being decommitted
      growing_ = true;
      growing_in_ = {};
    }
    const Status done = backend().decommit(base_ + from, to - from);
    const os::Lock lock(mutex_);
    usage_.end_decommit(to - from, done.ok());
    if (done) budget_.give_up(to - from);
    growing_ = false;
    changed_.notify_all();
  }

  Status obtain_locked(const Request& request, Block& block) noexcept BERTH_REQUIRES(mutex_) {
    // Committing memory and querying streams release the lock, so the offset is computed again after it.
    std::uint64_t clean_since = 0;
    while (true) {
      const auto address = try_align_up(reinterpret_cast<std::uintptr_t>(base_) + top_, request.alignment);
      if (!address || !fits(*address - reinterpret_cast<std::uintptr_t>(base_), request.bytes, capacity_)) {
        return kFull;
      }
      const std::size_t offset = *address - reinterpret_cast<std::uintptr_t>(base_);
      if (offset + request.bytes > committed()) {
        Status grown = commit_up_to(offset + request.bytes);
        if (!grown) return grown;
        continue;
      }
      if (clean_since != resets_ && !dirty_.empty() && offset < dirty_top_) {
        clean_since = resets_;
        if (!settle_dirty(request.stream, !holds_.any())) return kAtWork;
        continue;
      }
      return cut(offset, request, block);
    }
  }

  Status cut(std::size_t offset, const Request& request, Block& block) noexcept BERTH_REQUIRES(mutex_) {
    if (!users_.add(request.stream)) return Failure{ErrorCode::out_of_memory, 0, "no heap for the block's list of streams"};
    constexpr Failure kNoHeap{ErrorCode::out_of_memory, 0, "no heap for the block's entry"};
    if (!usage_.reserve(request.tag)) return kNoHeap;
    try {
      entries_.push_back(
          {offset, request.bytes, request.alignment, next_serial_, request.stream.id(), request.allocator_id, request.tag, true});
    } catch (const std::bad_alloc&) {
      return kNoHeap;
    }
    top_ = offset + request.bytes;
    ++changes_;
    usage_.count_allocation(request.tag, request.bytes);
    block.data = base_ + offset;
    block.serial = next_serial_++;
    return {};
  }

  // Whether a stream (null: the host) may use memory that was reset: the others that used it are past it, or
  // this one is ordered after them. Releases the lock while it queries them or waits for them: their work may
  // use the arena.
  bool settle_dirty(StreamRef on, bool wait) noexcept BERTH_REQUIRES(mutex_) {
    const std::uint64_t resets = resets_;
    BlockUsers asked;
    try {
      asked = dirty_;
    } catch (const std::bad_alloc&) {
      return false;
    }
    const bool done = os::unlocked(mutex_, [&] { return asked.are_done(wait, on); });
    if (resets == resets_) std::swap(asked, dirty_);
    os::unlocked(mutex_, [&] { asked = {}; });
    return done;
  }

  // Commits memory up to `end`, with the lock released during the call to the device. Other threads wait, and
  // look again.
  Status commit_up_to(std::size_t end) noexcept BERTH_REQUIRES(mutex_) {
    wait_for_growth();
    if (end <= committed()) return {};
    if (holds_.any()) return Failure{ErrorCode::busy, 0, "the arena would have to grow while its device is held"};
    const os::NoFork no_fork(no_fork_during_calls(backend()), os::NoFork::Wait::no);
    const std::size_t from = committed();
    const std::size_t to = std::min(*try_align_up(end, unit()), capacity_);
    if (budget_.claim(to - from) != nullptr) return kOverProcessLimit;
    growing_ = true;
    growing_in_ = {};
    const Status done = os::unlocked(mutex_, [&] { return backend().commit(base_ + from, to - from); });
    if (done)
      usage_.count_commit(to - from);
    else
      budget_.give_up(to - from);
    growing_ = false;
    changed_.notify_all();
    return done;
  }

  // Waits for a thread that is in a call to the device. In a forked child, a thread that stayed in the parent
  // never returns; what it was committing counts as not committed.
  void wait_for_growth() noexcept BERTH_REQUIRES(mutex_) {
    while (growing_ && !growing_in_.is_inherited()) changed_.wait(mutex_);
    growing_ = false;
  }

  // Finds the block that starts at an address. Entries are in order of address.
  Entry* find(const void* data) noexcept BERTH_REQUIRES(mutex_) {
    const std::uintptr_t offset =  // wraps around for lower addresses, which are not found
        reinterpret_cast<std::uintptr_t>(data) - reinterpret_cast<std::uintptr_t>(base_);
    const auto found = std::ranges::lower_bound(entries_, offset, {}, &Entry::offset);
    return found != entries_.end() && found->offset == offset ? &*found : nullptr;
  }

  std::byte* const base_;
  const std::size_t capacity_;  // a multiple of the device's unit
  Budget& budget_;              // of the process
  const os::Origin origin_;

  mutable os::Mutex mutex_;
  os::Condition changed_;
  bool growing_ BERTH_GUARDED_BY(mutex_) = false;   // a thread calls the device to change what is committed
  os::Origin growing_in_ BERTH_GUARDED_BY(mutex_);  // the process of that thread
  HoldCount holds_ BERTH_GUARDED_BY(mutex_);
  BlockUsers users_ BERTH_GUARDED_BY(mutex_);            // streams that used blocks since the last full reset
  BlockUsers dirty_ BERTH_GUARDED_BY(mutex_);            // may have work on reset memory, below dirty_top_
  std::size_t dirty_top_ BERTH_GUARDED_BY(mutex_) = 0;   //
  std::uint64_t resets_ BERTH_GUARDED_BY(mutex_) = 1;    // incremented by each reset that adds to dirty_
  std::vector<Entry> entries_ BERTH_GUARDED_BY(mutex_);  // by offset, not overlapping
  std::size_t top_ BERTH_GUARDED_BY(mutex_) = 0;         // end of entries <= top_ <= capacity_
  std::uint64_t changes_ BERTH_GUARDED_BY(mutex_) = 0;   // incremented by each allocation, free and use on another stream
  Usage usage_ BERTH_GUARDED_BY(mutex_);                 // in use: the sum of live entries' bytes
  std::uint64_t next_serial_ BERTH_GUARDED_BY(mutex_) = 1;
};

[[noreturn]] void throw_unreserved(const Failure& failure, Backend& backend, std::size_t capacity) {
  if (failure.code != ErrorCode::out_of_memory)
    throw_failure(failure, backend.device(), text::join("reserving an arena of ", text::bytes(capacity)));
  const MemoryInfo memory = backend.memory_info();
  OutOfMemoryReport report;
  report.device = backend.device();
  report.allocator = "arena";
  report.requested_bytes = capacity;
  report.device_total_bytes = memory.total_bytes;
  report.device_free_bytes = memory.free_bytes;
  report.refused_by = failure.why;
  throw OutOfMemory(std::move(report));
}

}  // namespace

std::shared_ptr<Arena> arena(Device device, std::size_t capacity_bytes) {
  Backend& backend = berth::backend(device);
  if (capacity_bytes == 0) {
    throw ArgumentError(ErrorCode::invalid_argument, {text::join("an arena of 0 bytes on ", device.to_string()),
                                                      "it could not serve any request", "give it a capacity"});
  }
  const std::size_t capacity = checked_align_up(capacity_bytes, backend.properties().unit_bytes, "an arena's capacity");
  const Result<void*> base = backend.reserve(capacity, backend.properties().unit_bytes);
  if (!base) throw_unreserved(base.failure(), backend, capacity);
  std::shared_ptr<Arena> made;
  try {
    (void)process_budget(backend);  // created before there is an arena to destroy again
    made = std::make_shared<ArenaStrategy>(backend, *base, capacity);
  } catch (...) {  // no heap, or a malformed limit
    (void)backend.release(*base, capacity).ok();
    throw;
  }
  return enlisted(std::move(made));
}

}  // namespace berth
