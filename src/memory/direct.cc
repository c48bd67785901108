// SPDX-License-Identifier: Apache-2.0
#include "berth/memory/direct.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <map>
#include <new>

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
#include "memory/live_table.h"
#include "memory/process_budget.h"
#include "memory/usage.h"
#include "os/lock/mutex.h"
#include "os/process/fork.h"

namespace berth {

using namespace internal;
using namespace internal::memory;

namespace {

class Direct : public Allocator {
 public:
  explicit Direct(Device device) : Allocator(berth::backend(device)), budget_(process_budget(backend())) {
    if (!backend().properties().abilities.host_access) grain_ = backend().properties().unit_bytes;
  }

  // Buffers keep their allocator alive, so blocks that are live here were leaked by a user of bare blocks. They
  // are not freed: they may still be in use. Blocks with pending stream work are freed after that work: this
  // may run inside the work itself, where waiting is not allowed.
  ~Direct() override {
    while (!waiting_.empty()) {
      Waiting& block = waiting_.begin()->second;
      const LiveEntry entry = block.entry;
      if (block.users.are_done(false))
        return_to_device(entry);
      else if (!is_inherited() && backend().is_alive())
        (void)block.users.enqueue_behind([&device = backend(), &budget = budget_, taken = taken(entry.bytes), entry] {
          device.free(entry.data, entry.bytes, entry.alignment());
          budget.give_up(taken);
        });
      waiting_.erase(waiting_.begin());
    }
  }

  Status obtain(const Request& request, Block& block) noexcept override {
    if (held_.load(std::memory_order_acquire)) [[unlikely]] {
      if (is_held()) return refused({ErrorCode::busy, 0, "the device is held, and direct has no cache"});
    }
    if (is_inherited()) [[unlikely]]
      return refused({ErrorCode::fork_unsafe, 0, "the allocator was made before fork, for a device that does not survive it"});
    // relaxed: a hint. What is missed now is found next time.
    if (any_waiting_.load(std::memory_order_relaxed)) [[unlikely]]
      (void)settle(Patience::none);
    if (!claim(request.bytes)) [[unlikely]]
      return refused(kOverProcessLimit);
    Result<void*> data = backend().allocate(request.bytes, request.alignment);
    if (!data && data.failure().code == ErrorCode::out_of_memory && settle(Patience::for_all)) [[unlikely]]
      data = backend().allocate(request.bytes, request.alignment);
    if (!data) [[unlikely]] {
      budget_.give_up(taken(request.bytes));
      return refused(data.failure());
    }
    const std::uint64_t serial = add(*data, request);
    if (serial == 0) [[unlikely]] {
      backend().free(*data, request.bytes, request.alignment);
      budget_.give_up(taken(request.bytes));
      return refused({ErrorCode::out_of_memory, 0, "no heap for the block's entry"});
    }
    block.data = *data;
    block.serial = serial;
    return {};
  }

  BlockVerdict give_back(const Block& block, When when, Block* known) noexcept override {
    LiveEntry entry;
    {
      const os::Lock lock(mutex_);
      LiveEntry* const found = live_.find(block.data);
      const BlockVerdict verdict = judge(found, block, next_serial_);
      if (verdict != BlockVerdict::ok) return verdict;
      entry = *found;
      if (known != nullptr) complete(known, block, entry.known());
      count_free(entry);
      if (!entry.has_users && holds_.any()) {
        found->freed_in_hold = true;
        return BlockVerdict::ok;
      }
      live_.erase(found);
      if (entry.has_users) let_wait(entry, when);
    }
    if (entry.has_users)
      (void)settle(when == When::now ? Patience::for_urgent : Patience::none);
    else
      return_to_device(entry);
    return BlockVerdict::ok;
  }

  bool grow(Block&, std::size_t) noexcept override { return false; }  // a device allocation has a fixed size
  Result<BlockVerdict> note_use(const Block& block, StreamRef stream) noexcept override {
    const os::Lock lock(mutex_);
    LiveEntry* const found = live_.find(block.data);
    const BlockVerdict verdict = judge(found, block, next_serial_);
    if (verdict != BlockVerdict::ok || !stream) return verdict;
    return add_user(*found, stream) ? Result<BlockVerdict>(BlockVerdict::ok)
                                    : Failure{ErrorCode::out_of_memory, 0, "no heap for the block's list of streams"};
  }

  Result<bool> locate(Block& block) noexcept override {
    const os::Lock lock(mutex_);
    return describe(live_.find(block.data), block);
  }

  void trim(std::size_t) override { (void)settle(Patience::none); }
  void reserve(std::size_t) override {}

  void begin_hold() noexcept override {
    const os::Lock lock(mutex_);
    holds_.begin();
    held_.store(true, std::memory_order_release);
  }

  void end_hold() noexcept override {
    {
      const os::Lock lock(mutex_);
      if (!holds_.end()) return;
      held_.store(false, std::memory_order_release);
    }
    LiveEntry entry;
    std::size_t from = 0;
    while (take_freed_in_hold(entry, from)) return_to_device(entry);
    (void)settle(Patience::for_urgent);
  }

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

  void list_blocks(Snapshot& snapshot) const override {
    snapshot.has_blocks = true;
    const os::Lock lock(mutex_);
    const auto list = [&](const LiveEntry& entry, BlockState state) BERTH_NO_THREAD_ANALYSIS {
      snapshot.blocks.push_back({.offset = reinterpret_cast<std::uintptr_t>(entry.data),
                                 .bytes = entry.bytes,
                                 .requested = entry.bytes,
                                 .stream_id = entry.stream_id,
                                 .age_ns = 0,
                                 .tag = entry.tag.id(),
                                 .site = 0,
                                 .state = state});
    };
    live_.for_each([&](const LiveEntry& entry) { list(entry, entry.freed_in_hold ? BlockState::waiting : BlockState::live); });
    for (const auto& [serial, waiting] : waiting_) list(waiting.entry, BlockState::waiting);
  }

  std::string name() const override { return "direct"; }
  std::string settings() const override { return text::join("direct on ", device().to_string()); }

  void explain(const Failure& failure, OutOfMemoryReport& report) const override {
    const os::Lock lock(mutex_);
    report.in_use_bytes = usage_.in_use_bytes();
    report.cached_bytes = usage_.cached_bytes();
    name_device(failure, report);
    if (report.device_free_bytes < report.requested_bytes) report.would_be_enough_bytes = report.requested_bytes - report.device_free_bytes;
    report.tried.emplace_back("asked the device; direct has no cache to release");
  }

  std::string audit() const override {
    const os::Lock lock(mutex_);
    std::size_t live_bytes = 0;
    std::size_t freed_bytes = asked_bytes_;
    std::uint64_t kept = 0;
    live_.for_each([&](const LiveEntry& entry) {
      (entry.freed_in_hold ? freed_bytes : live_bytes) += entry.bytes;
      kept += entry.freed_in_hold ? 1 : 0;
    });
    for (const auto& [serial, waiting] : waiting_) freed_bytes += waiting.entry.bytes;
    if (live_bytes != usage_.in_use_bytes()) return "direct: in_use_bytes is not the sum of the live blocks";
    if (freed_bytes != usage_.cached_bytes()) return "direct: cached_bytes is not the sum of the freed blocks that are kept";
    if (users_.size() > live_.size()) return "direct: more blocks have users than live";
    if (kept != freed_in_hold_ || live_.size() != usage_.live_blocks() + kept) return "direct: the table and the counts disagree";
    return usage_.audit("direct");
  }

 private:
  // Claims from the process's budget; if there is no room, blocks that only wait for streams are released
  // first.
  bool claim(std::size_t bytes) noexcept {
    if (budget_.claim(taken(bytes)) == nullptr) [[likely]]
      return true;
    return settle(Patience::for_all) && budget_.claim(taken(bytes)) == nullptr;
  }

  // What a block takes of the device. A size too large to round up is too large for any limit.
  std::size_t taken(std::size_t bytes) const noexcept { return try_align_up(bytes, grain_).value_or(bytes); }

  Failure refused(Failure failure) noexcept {
    const os::Lock lock(mutex_);
    usage_.count_refusal();
    return failure;
  }

  // Adds the block to the table and returns its serial; 0 when there is no heap for that.
  std::uint64_t add(void* data, const Request& request) noexcept {
    const os::Lock lock(mutex_);
    LiveEntry* const entry = usage_.reserve(request.tag) ? live_.insert(data) : nullptr;
    if (entry == nullptr) return 0;
    entry->bytes = request.bytes;
    entry->serial = next_serial_;
    entry->tag = request.tag;
    entry->alignment_log2 = static_cast<std::uint8_t>(std::countr_zero(request.alignment));
    entry->freed_in_hold = entry->has_users = false;
    entry->stream_id = request.stream.id();
    entry->allocator_id = request.allocator_id;
    if (request.stream && !add_user(*entry, request.stream)) {
      live_.erase(entry);
      return 0;
    }
    usage_.count_commit(request.bytes);
    usage_.count_allocation(request.tag, request.bytes);
    return next_serial_++;
  }

  // A freed or live block, and the streams that use it.
  struct Waiting {
    LiveEntry entry;
    BlockUsers users;
    bool urgent = false;  // deallocate_now: wait where that is allowed
  };
  enum class Patience { none, for_urgent, for_all };

  void let_wait(const LiveEntry& entry, When when) noexcept BERTH_REQUIRES(mutex_) {
    auto node = users_.extract(entry.serial);
    node.mapped().entry = entry;
    node.mapped().urgent = when == When::now;
    waiting_.insert(std::move(node));
    any_waiting_.store(true, std::memory_order_relaxed);
  }

  bool add_user(LiveEntry& entry, StreamRef stream) noexcept BERTH_REQUIRES(mutex_) {
    try {
      entry.has_users = users_[entry.serial].users.add(stream) || entry.has_users;
      return entry.has_users;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }

  // Releases the blocks that no pending work can touch, and waits for some, or all, of the others. Returns true
  // if any was released.
  bool settle(Patience patience) noexcept {
    bool any = false;
    for (std::uint64_t at = 0;;) {
      std::map<std::uint64_t, Waiting>::node_type node;
      {
        const os::Lock lock(mutex_);
        const auto next = holds_.any() || is_inherited() ? waiting_.end() : waiting_.upper_bound(at);
        if (next == waiting_.end()) {
          any_waiting_.store(!waiting_.empty(), std::memory_order_relaxed);
          return any;
        }
        node = waiting_.extract(next);  // no other thread queries it meanwhile
        asked_bytes_ += node.mapped().entry.bytes;
      }
      at = node.key();
      const bool wait = patience == Patience::for_all || (patience == Patience::for_urgent && node.mapped().urgent);
      const bool done = node.mapped().users.are_done(wait);
      if (done) return_to_device(node.mapped().entry);
      const os::Lock lock(mutex_);
      asked_bytes_ -= node.mapped().entry.bytes;
      if (done) {
        usage_.count_decommit(node.mapped().entry.bytes);
        any = true;
      } else {
        waiting_.insert(std::move(node));
        any_waiting_.store(true, std::memory_order_relaxed);
      }
    }
  }

  bool is_held() const noexcept {
    const os::Lock lock(mutex_);
    return holds_.any();
  }

  void count_free(const LiveEntry& entry) noexcept BERTH_REQUIRES(mutex_) {
    usage_.count_free(entry.tag, entry.bytes);
    if (entry.has_users) return;  // cached until no pending work can touch it
    if (holds_.any())
      ++freed_in_hold_;  // cached until the hold ends
    else
      usage_.count_decommit(entry.bytes);
  }

  bool take_freed_in_hold(LiveEntry& entry, std::size_t& from) noexcept {
    const os::Lock lock(mutex_);
    if (holds_.any() || freed_in_hold_ == 0) return false;
    LiveEntry* found = live_.find_freed_in_hold(from);
    if (found == nullptr) found = live_.find_freed_in_hold((from = 0, from));
    entry = *found;
    live_.erase(found);
    --freed_in_hold_;
    usage_.count_decommit(entry.bytes);
    return true;
  }

  bool is_inherited() const noexcept { return memory::is_inherited(origin_, backend()); }

  // A forked child, and a program whose device was lost, do not call the device.
  void return_to_device(const LiveEntry& entry) noexcept {
    if (!is_inherited() && backend().is_alive()) backend().free(entry.data, entry.bytes, entry.alignment());
    budget_.give_up(taken(entry.bytes));
  }

  Budget& budget_;         // of the process
  std::size_t grain_ = 1;  // a page where blocks have pages of their own
  const os::Origin origin_;
  mutable os::Mutex mutex_;
  LiveTable live_ BERTH_GUARDED_BY(mutex_);                            // size() == live_blocks + freed_in_hold_
  std::map<std::uint64_t, Waiting> users_ BERTH_GUARDED_BY(mutex_);    // by serial: live blocks that have users
  std::map<std::uint64_t, Waiting> waiting_ BERTH_GUARDED_BY(mutex_);  // by serial: freed blocks, still cached
  std::atomic<bool> any_waiting_{false};
  std::size_t asked_bytes_ BERTH_GUARDED_BY(mutex_) = 0;  // of freed blocks that settle() took from waiting_
  Usage usage_ BERTH_GUARDED_BY(mutex_);                  // cached: waiting_, asked_bytes_, freed in a hold
  std::uint64_t next_serial_ BERTH_GUARDED_BY(mutex_) = 1;
  std::uint64_t freed_in_hold_ BERTH_GUARDED_BY(mutex_) = 0;
  HoldCount holds_ BERTH_GUARDED_BY(mutex_);
  std::atomic<bool> held_{false};  // a hint for holds_, read without the lock before every request
};

}  // namespace

std::shared_ptr<Allocator> direct(Device device) { return enlisted(std::make_shared<Direct>(device)); }

}  // namespace berth
