// SPDX-License-Identifier: Apache-2.0
#include "berth/memory/arena.h"

#include <algorithm>
#include <cstdint>
#include <new>
#include <vector>

#include "base/text.h"
#include "berth/base/checked.h"
#include "berth/device/backend.h"
#include "berth/device/registry.h"
#include "berth/memory/snapshot.h"
#include "memory/block_users.h"
#include "memory/hold_count.h"
#include "memory/holders.h"
#include "memory/process_budget.h"
#include "os/lock/mutex.h"
#include "os/process/fork.h"

namespace berth {

using namespace internal;
using namespace internal::memory;

namespace {

//     base_                          top_          committed_                capacity_
//       | block | gap | block | dead |   committed     |   reserved addresses    |
class ArenaStrategy : public Arena {
 public:
  ArenaStrategy(Backend& device_backend, void* base, std::size_t capacity)
      : Arena(device_backend), base_(static_cast<std::byte*>(base)), capacity_(capacity), budget_(process_budget(device_backend)) {}

  // Behind what streams may still do in it. Nobody waits: the last handle of an arena may go inside a stream's own work.
  ~ArenaStrategy() override {
    const auto release = [&device = backend(), &budget = budget_, base = base_, bytes = capacity_, committed = committed_] {
      (void)device.release(base, bytes).ok();
      budget.give_up(committed);
    };
    if (is_inherited() || !backend().is_alive()) {
      budget_.give_up(committed_);
      return;
    }
    try {
      dirty_.add_all(users_);
    } catch (const std::bad_alloc&) {  // the range is safer lost than released under work that runs
      return;
    }
    dirty_.are_done(false) ? release() : (void)dirty_.enqueue_behind(release);
  }

  Status obtain(const Request& request, Block& block) noexcept override {
    if (is_inherited()) return Failure{ErrorCode::fork_unsafe, 0, "the arena was made before fork, on a device that does not survive it"};
    const os::Lock lock(mutex_);
    Status done = obtain_locked(request, block);
    if (!done) ++failures_;
    return done;
  }

  BlockVerdict give_back(const Block& block, When, Block* known) noexcept override {
    const os::Lock lock(mutex_);
    Entry* const entry = find(block.data);
    const BlockVerdict verdict = judge(entry, block);
    if (verdict != BlockVerdict::ok) return verdict;
    entry->live = false;
    in_use_ -= entry->bytes;
    --live_blocks_;
    ++frees_;
    if (known != nullptr) {
      *known = block;
      known->serial = entry->serial;
      known->tag = entry->tag;
      known->alignment = entry->alignment;
      known->stream_id = entry->stream_id;
    }
    return BlockVerdict::ok;
  }

  // The last block, up to the capacity. Growing lets go of the lock, so everything is looked at anew after it.
  bool grow(Block& block, std::size_t bytes) noexcept override {
    if (is_inherited()) return false;
    const os::Lock lock(mutex_);
    std::uint64_t clean_since = 0;
    while (true) {
      Entry* const entry = find(block.data);
      if (entry == nullptr || !entry->live || entry->serial != block.serial || entry->bytes != block.bytes) return false;
      if (entry->allocator_id != block.allocator_id || entry != &entries_.back() || !fits(entry->offset, bytes, capacity_)) return false;
      if (entry->offset + bytes > committed_) {
        if (!commit_up_to(entry->offset + bytes)) return false;
        continue;
      }
      if (clean_since != resets_ && !dirty_.empty() && top_ < dirty_top_) {  // as for a request, but nobody is waited for
        clean_since = resets_;
        if (!settle_dirty({}, false)) return false;
        continue;
      }
      in_use_ += bytes - entry->bytes;
      peak_in_use_ = std::max(peak_in_use_, in_use_);
      entry->bytes = bytes;
      entry->serial = next_serial_++;
      top_ = entry->offset + bytes;
      ++allocations_;
      ++frees_;
      block.bytes = bytes;
      block.serial = entry->serial;
      return true;
    }
  }

  Result<BlockVerdict> note_use(const Block& block, StreamRef stream) noexcept override {
    const os::Lock lock(mutex_);
    const Entry* const entry = find(block.data);
    const BlockVerdict verdict = judge(entry, block);
    if (verdict != BlockVerdict::ok) return verdict;
    return users_.add(stream) ? Result<BlockVerdict>(BlockVerdict::ok)
                              : Failure{ErrorCode::out_of_memory, 0, "no heap to remember the stream"};
  }

  ArenaMark mark() const override {
    const os::Lock lock(mutex_);
    return {top_, entries_.size(), entries_.empty() ? 0 : entries_.back().serial};
  }

  void reset(ArenaMark mark) override {
    std::size_t live = 0;
    bool known = false;
    BlockUsers gone;  // let go of without the lock
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
                          {"resetting an arena to a mark", "the arena was reset to before that mark, or the mark is another's",
                           "take marks and reset to them in reverse order"});
    }
    throw AccessError(
        ErrorCode::busy,
        {"resetting an arena", text::join(live, " of its blocks still live"), "free them, or drop the storages that use them, first"},
        {{"blocks", live}});
  }

  // What is past the top can go; below it live blocks may be.
  void trim(std::size_t keep_bytes) override {
    if (is_inherited()) return;
    std::size_t from = 0;
    std::size_t to = 0;
    {
      const os::Lock lock(mutex_);
      if (!dirty_.empty()) (void)settle_dirty({}, false);
      wait_for_growth();
      const std::size_t used = dirty_.empty() ? top_ : std::max(top_, dirty_top_);
      const std::size_t keep = try_add(used, keep_bytes).value_or(capacity_);
      from = try_align_up(keep, unit()).value_or(capacity_);
      to = committed_;
      if (holds_.any() || from >= to) return;
      committed_ = from;  // at once: nobody may cut from what is being taken away
      growing_ = true;
      growing_in_ = os::fork_generation();
    }
    const Status done = backend().decommit(base_ + from, to - from);
    const os::Lock lock(mutex_);
    if (!done) committed_ = to;
    if (done) ++decommits_;
    if (done) budget_.give_up(to - from);
    growing_ = false;
    changed_.notify_all();
  }

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
    return {.in_use_bytes = in_use_,
            .cached_bytes = committed_ - in_use_,
            .committed_bytes = committed_,
            .peak_in_use_bytes = peak_in_use_,
            .peak_committed_bytes = peak_committed_,
            .live_blocks = live_blocks_,
            .allocations = allocations_,
            .frees = frees_,
            .failures = failures_,
            .commits = commits_,
            .decommits = decommits_};
  }

  std::vector<Holder> holders() const override {
    HolderTotals totals;
    {
      const os::Lock lock(mutex_);
      for (const Entry& entry : entries_) {
        if (entry.live) totals.add(entry.tag, entry.bytes);
      }
    }
    return totals.most_first();
  }

  // What dead blocks leave is free, though not before a reset.
  void list_blocks(Snapshot& snapshot) const override {
    const os::Lock lock(mutex_);
    snapshot.has_blocks = true;
    snapshot.base = reinterpret_cast<std::uintptr_t>(base_);
    snapshot.range_bytes = snapshot.limit_bytes = capacity_;
    snapshot.page_bytes = backend().properties().unit_bytes;
    if (committed_ != 0) snapshot.memory.push_back({0, committed_});
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
    free_to(committed_);
  }

  std::string name() const override { return "arena"; }
  std::string settings() const override { return text::join("arena of ", text::bytes(capacity_), " on ", device().to_string()); }

  void explain(const Failure& failure, OutOfMemoryReport& report) const override {
    const os::Lock lock(mutex_);
    report.in_use_bytes = in_use_;
    report.cached_bytes = committed_ - in_use_;
    report.largest_free_run_bytes = committed_ - top_;
    report.tried.emplace_back("cut from the end of the arena; dead blocks are used again only after a reset");
    report.refused_by = failure.cause == Refusal::pending_work ? kAtWork.why : "the device";
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
    if (end > top_ || top_ > committed_ || committed_ > capacity_) return "arena: blocks <= top <= committed <= capacity does not hold";
    if (live_bytes != in_use_ || live != live_blocks_) return "arena: the counts are not the sum of the live blocks";
    if (allocations_ != frees_ + live_blocks_) return "arena: allocations != frees + live";
    if (in_use_ > peak_in_use_ || committed_ > peak_committed_) return "arena: a peak is too low";
    return {};
  }

 private:
  static constexpr Failure kFull{ErrorCode::out_of_memory, 0, "the arena's capacity", Refusal::arena_full};
  static constexpr Failure kAtWork{ErrorCode::out_of_memory, 0, "a stream is at work on what was reset", Refusal::pending_work};

  struct Entry {
    std::size_t offset;
    std::size_t bytes;
    std::size_t alignment;
    std::uint64_t serial;
    std::uint64_t stream_id;
    std::uint64_t allocator_id;  // whom it must come back to
    Tag tag;
    bool live;
  };

  bool is_inherited() const noexcept { return generation_ != os::fork_generation() && !backend().properties().abilities.fork_safe; }

  // Whether the block before the mark is still the one it was.
  bool is_known(const ArenaMark& mark) const noexcept BERTH_REQUIRES(mutex_) {
    if (mark.blocks == 0) return mark.offset == 0;
    if (mark.blocks > entries_.size()) return false;
    const Entry& last = entries_[mark.blocks - 1];
    return last.serial == mark.last_serial && last.offset + last.bytes == mark.offset;
  }

  BlockVerdict judge(const Entry* entry, const Block& block) const noexcept BERTH_REQUIRES(mutex_) {
    if (entry == nullptr) return block.serial != 0 && block.serial < next_serial_ ? BlockVerdict::double_free : BlockVerdict::foreign;
    if (entry->allocator_id != block.allocator_id) return BlockVerdict::foreign;
    if (!entry->live || (block.serial != 0 && block.serial != entry->serial)) return BlockVerdict::double_free;
    return entry->bytes == block.bytes ? BlockVerdict::ok : BlockVerdict::size_mismatch;
  }

  std::size_t unit() const noexcept { return backend().properties().unit_bytes; }

  Status obtain_locked(const Request& request, Block& block) noexcept BERTH_REQUIRES(mutex_) {
    // Growing, and asking streams, lets go of the lock, so the place is computed anew after it.
    std::uint64_t clean_since = 0;
    while (true) {
      const auto address = try_align_up(reinterpret_cast<std::uintptr_t>(base_) + top_, request.alignment);
      if (!address || !fits(*address - reinterpret_cast<std::uintptr_t>(base_), request.bytes, capacity_)) {
        return kFull;
      }
      const std::size_t offset = *address - reinterpret_cast<std::uintptr_t>(base_);
      if (offset + request.bytes > committed_) {
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
    if (!users_.add(request.stream)) return Failure{ErrorCode::out_of_memory, 0, "no heap to remember the stream"};
    try {
      entries_.push_back(
          {offset, request.bytes, request.alignment, next_serial_, request.stream.id(), request.allocator_id, request.tag, true});
    } catch (const std::bad_alloc&) {
      return Failure{ErrorCode::out_of_memory, 0, "no heap to remember the block"};
    }
    top_ = offset + request.bytes;
    in_use_ += request.bytes;
    peak_in_use_ = std::max(peak_in_use_, in_use_);
    ++live_blocks_;
    ++allocations_;
    block.data = base_ + offset;
    block.serial = next_serial_++;
    return {};
  }

  // Whether a stream (none: the host) may use what was reset: the others that used it are past that, or it comes after them. Without the
  // lock while they are asked, or waited for: their work may use the arena.
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

  // Commits until `end` is covered, without the lock while the device works. Others wait, and look again.
  Status commit_up_to(std::size_t end) noexcept BERTH_REQUIRES(mutex_) {
    wait_for_growth();
    if (end <= committed_) return {};
    if (holds_.any()) return Failure{ErrorCode::busy, 0, "the arena would have to grow while its device is held"};
    const std::size_t from = committed_;
    const std::size_t to = std::min(*try_align_up(end, unit()), capacity_);
    if (budget_.claim(to - from) != nullptr) return kOverProcessLimit;
    growing_ = true;
    growing_in_ = os::fork_generation();
    const Status done = os::unlocked(mutex_, [&] { return backend().commit(base_ + from, to - from); });
    if (!done) budget_.give_up(to - from);
    committed_ = done ? to : from;
    if (done) ++commits_;
    peak_committed_ = std::max(peak_committed_, committed_);
    growing_ = false;
    changed_.notify_all();
    return done;
  }

  // Waits for a thread that is at the device. One that stayed behind in the parent of a forked child will never come back; what it was
  // committing counts as not committed.
  void wait_for_growth() noexcept BERTH_REQUIRES(mutex_) {
    while (growing_ && growing_in_ == os::fork_generation()) changed_.wait(mutex_);
    growing_ = false;
  }

  // The block that starts at an address. Entries are in order of address.
  Entry* find(const void* data) noexcept BERTH_REQUIRES(mutex_) {
    const std::uintptr_t offset =
        reinterpret_cast<std::uintptr_t>(data) - reinterpret_cast<std::uintptr_t>(base_);  // wraps for lower addresses: not found
    const auto found = std::ranges::lower_bound(entries_, offset, {}, &Entry::offset);
    return found != entries_.end() && found->offset == offset ? &*found : nullptr;
  }

  std::byte* const base_;
  const std::size_t capacity_;  // a multiple of the device's unit
  Budget& budget_;              // of the process
  const std::uint64_t generation_ = os::fork_generation();

  mutable os::Mutex mutex_;
  os::Condition changed_;
  bool growing_ BERTH_GUARDED_BY(mutex_) = false;          // a thread is at the device to change committed_
  std::uint64_t growing_in_ BERTH_GUARDED_BY(mutex_) = 0;  // the fork generation of that thread
  HoldCount holds_ BERTH_GUARDED_BY(mutex_);
  BlockUsers users_ BERTH_GUARDED_BY(mutex_);            // streams that use blocks, or have used them since everything was last reset
  BlockUsers dirty_ BERTH_GUARDED_BY(mutex_);            // streams that may still be at work on what was reset, all of it below dirty_top_
  std::size_t dirty_top_ BERTH_GUARDED_BY(mutex_) = 0;   //
  std::uint64_t resets_ BERTH_GUARDED_BY(mutex_) = 1;    // one more with each that made something dirty
  std::vector<Entry> entries_ BERTH_GUARDED_BY(mutex_);  // by offset, not overlapping
  std::size_t top_ BERTH_GUARDED_BY(mutex_) = 0;         // end of the last entry <= top_ <= committed_ <= capacity_
  std::size_t committed_ BERTH_GUARDED_BY(mutex_) = 0;
  std::size_t in_use_ BERTH_GUARDED_BY(mutex_) = 0;  // sum of live entries' bytes
  std::size_t peak_in_use_ BERTH_GUARDED_BY(mutex_) = 0;
  std::size_t peak_committed_ BERTH_GUARDED_BY(mutex_) = 0;
  std::uint64_t live_blocks_ BERTH_GUARDED_BY(mutex_) = 0;
  std::uint64_t allocations_ BERTH_GUARDED_BY(mutex_) = 0;  // == frees_ + live_blocks_
  std::uint64_t frees_ BERTH_GUARDED_BY(mutex_) = 0;
  std::uint64_t failures_ BERTH_GUARDED_BY(mutex_) = 0;
  std::uint64_t commits_ BERTH_GUARDED_BY(mutex_) = 0;
  std::uint64_t decommits_ BERTH_GUARDED_BY(mutex_) = 0;
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
    throw ArgumentError(ErrorCode::invalid_argument,
                        {text::join("an arena of 0 bytes on ", device.to_string()), "it could serve nothing", "give it a capacity"});
  }
  const std::size_t capacity = checked_align_up(capacity_bytes, backend.properties().unit_bytes, "an arena's capacity");
  const Result<void*> base = backend.reserve(capacity, backend.properties().unit_bytes);
  if (!base) throw_unreserved(base.failure(), backend, capacity);
  std::shared_ptr<Arena> made;
  try {
    (void)process_budget(backend);  // made before there is an arena to destroy again
    made = std::make_shared<ArenaStrategy>(backend, *base, capacity);
  } catch (...) {  // no heap, or a limit that makes no sense
    (void)backend.release(*base, capacity).ok();
    throw;
  }
  return enlisted(std::move(made));
}

}  // namespace berth
