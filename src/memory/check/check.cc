// SPDX-License-Identifier: Apache-2.0
#include "berth/memory/check.h"

#include <algorithm>
#include <atomic>

#include "berth/base/units.h"
#include "berth/device/backend.h"
#include "berth/record/misuse.h"
#include "memory/adaptor.h"
#include "memory/check/inside.h"
#include "memory/check/ledger.h"
#include "memory/check/marks.h"
#include "memory/hold_count.h"
#include "memory/holders.h"
#include "os/lock/mutex.h"
#include "os/process/stack.h"

namespace berth {

using namespace internal;
using namespace internal::memory;

namespace {

constexpr std::size_t kMostCanary = 64_KiB;
constexpr std::uint64_t kMostGuarded = 8192;  // two mappings each, of the 65,530 that Linux allows a process

constexpr Failure kNoHeap{ErrorCode::out_of_memory, 0, "no heap for the block's entry"};
constexpr Failure kTooLarge{ErrorCode::out_of_memory, 0, "no address space is that large"};
constexpr Failure kReentered{ErrorCode::busy, 0, "the allocator was called from inside itself"};

bool any(const LedgerEntry&) noexcept { return true; }

// Omits the frames of this function and of the adaptor that calls it.
[[gnu::noinline]] CallSite call_site(const Site& site) noexcept {
  CallSite call{.site = site};
  os::capture_stack(call.frames, 2);
  return call;
}

class Checked : public Adaptor<CheckAdaptor> {
 public:
  Checked(std::shared_ptr<Allocator> upstream, const CheckOptions& options)
      : Adaptor("check", std::move(upstream)), options_(options), name_(Adaptor::name()), marks_(backend(), options.canary_bytes) {}

  // Live blocks were leaked by a user of bare blocks, who may still use them.
  ~Checked() override { empty_quarantine(any); }

  Status obtain(const Request& request, Block& block) noexcept override {
    if (Inside::is(this)) return reentered(request);
    const Inside inside(this);
    LedgerEntry* const entry = take_entry();
    if (entry == nullptr) return refused(kNoHeap);
    entry->allocated = call_site(request.site);
    if (request.stream) entry->stream = Stream(request.stream->shared_from_this());
    Status done = ask_upstream(request, block, *entry);
    if (done) done = prepare(request, block, *entry);
    if (done && !enter(*entry, block)) {
      Marks::finish(*entry);
      give_upstream(*entry, When::later);
      done = kNoHeap;
    }
    if (done) return {};
    put_back(*entry);
    return refused(done.failure());
  }

  BlockVerdict give_back(const Block& block, When when, Block* known) noexcept override {
    if (Inside::is(this)) return BlockVerdict::reentered;
    const Inside inside(this);
    const CallSite here = call_site({});
    LedgerEntry* entry = nullptr;
    bool held = false;
    {
      const os::Lock lock(mutex_);
      entry = ledger_.find(block);
      const BlockVerdict verdict = ledger_.judge(entry, block);
      if (verdict != BlockVerdict::ok) return verdict;
      entry->freed = here;
      ledger_.leave(*entry);
      held = holds_.any();
    }
    if (known != nullptr) *known = entry->block;
    const bool stays = when == When::later && entry->block.bytes <= options_.quarantine_bytes && options_.quarantine_blocks != 0;
    look_at_canary(*entry, held);
    if (stays || held) {
      entry->leaves_now = when == When::now;
      spoil(*entry, held);
      add_to_quarantine(*entry);
    } else {
      leave(*entry, when);
    }
    return BlockVerdict::ok;
  }

  bool grow(Block&, std::size_t) noexcept override { return false; }  // the canary is in the way

  Result<BlockVerdict> note_use(const Block& block, StreamRef stream) noexcept override {
    if (Inside::is(this)) return BlockVerdict::reentered;
    const Inside inside(this);
    Block below;
    {
      const os::Lock lock(mutex_);
      LedgerEntry* const entry = ledger_.find(block);
      const BlockVerdict verdict = ledger_.judge(entry, block);
      if (verdict != BlockVerdict::ok) return verdict;
      if (stream) entry->has_other_streams = true;  // even if upstream fails: the stream uses it anyway
      below = entry->below;
    }
    return upstream_->note_use(below, stream);
  }

  Result<bool> locate(Block& block) noexcept override {
    if (Inside::is(this)) return kReentered;
    const Inside inside(this);
    const os::Lock lock(mutex_);
    const LedgerEntry* const entry = ledger_.find(block);
    if (!describe(entry, block)) return false;
    block = entry->block;
    return true;
  }

  void trim(std::size_t keep_bytes) override {
    {
      const Inside inside(this);
      if (!is_held()) empty_quarantine(any);
    }
    upstream_->trim(keep_bytes);
  }

  void begin_hold() noexcept override {
    const Inside inside(this);
    {
      const os::Lock lock(mutex_);
      holds_.begin();
    }
    upstream_->begin_hold();
  }

  void end_hold() noexcept override {
    const Inside inside(this);
    upstream_->end_hold();
    {
      const os::Lock lock(mutex_);
      if (!holds_.end()) return;
    }
    empty_quarantine([](const LedgerEntry& entry) noexcept { return entry.leaves_now; });
    keep_quarantine_in_bounds();
  }

  // Upstream counts canaries and quarantined blocks as in use; to users both are cached.
  Stats stats() const override {
    const Inside inside(this);
    Stats all = upstream_->stats();
    const os::Lock lock(mutex_);
    const Stats counts = ledger_.counts();
    all.in_use_bytes = counts.in_use_bytes;
    all.peak_in_use_bytes = counts.peak_in_use_bytes;
    all.live_blocks = counts.live_blocks;
    all.allocations = counts.allocations;
    all.frees = counts.frees;
    all.failures = refused_;
    // Requests of other threads since the call to upstream may have raised in_use_bytes above what it reported.
    all.committed_bytes = std::max(all.committed_bytes + guarded_bytes_, all.in_use_bytes);
    all.peak_committed_bytes = std::max(all.peak_committed_bytes + peak_guarded_bytes_, all.committed_bytes);
    all.cached_bytes = all.committed_bytes - all.in_use_bytes;
    return all;
  }

  std::vector<Holder> holders() const override {
    const Inside inside(this);
    std::vector<Holder> held;
    {
      const os::Lock lock(mutex_);
      held = ledger_.holders();
    }
    return most_first(std::move(held));
  }

  std::span<const std::byte> range() const noexcept override {  // guarded blocks are outside it
    return can_guard() ? std::span<const std::byte>() : upstream_->range();
  }

  std::string name() const override { return name_; }

  std::string settings() const override {
    std::string own = text::join("check (canary ", text::bytes(options_.canary_bytes), ", quarantine ",
                                 text::bytes(options_.quarantine_bytes), " in ", options_.quarantine_blocks, " blocks");
    if (can_guard()) own += text::join(", guard every ", options_.guard_every);
    if (options_.zero) own += ", zero";
    return text::join(own, ") over ", upstream_->settings());
  }

  void explain(const Failure& failure, OutOfMemoryReport& report) const override {
    upstream_->explain(failure, report);
    if (failure.code == ErrorCode::out_of_memory) report.tried.emplace_back("freed the blocks in the quarantine of check");
  }

  void explain_free(const Block& block, Misuse& misuse) const noexcept override {
    const Inside inside(this);
    misuse.here = call_site({});
    const os::Lock lock(mutex_);
    const LedgerEntry* const entry = ledger_.find(block);
    if (entry == nullptr || entry->block.allocator_id != block.allocator_id) return;
    misuse.allocated = entry->allocated;
    if (entry->state != LedgerEntry::State::live) misuse.freed = entry->freed;
    if (!misuse.tag) misuse.tag = entry->block.tag;
  }

  std::string audit() const override {
    const Inside inside(this);
    {
      const os::Lock lock(mutex_);
      if (std::string wrong = ledger_.audit(); !wrong.empty()) return wrong;
    }
    return upstream_->audit();
  }

  std::uint64_t guarded() const override { return guarded_.load(std::memory_order_relaxed); }
  std::uint64_t unguarded() const override { return unguarded_.load(std::memory_order_relaxed); }

 private:
  bool can_guard() const noexcept { return options_.guard_every != 0 && device().key() == Device().key(); }
  bool is_held() const noexcept {
    const os::Lock lock(mutex_);
    return holds_.any();
  }

  LedgerEntry* take_entry() noexcept {
    const os::Lock lock(mutex_);
    return ledger_.take();
  }

  bool enter(LedgerEntry& entry, Block& block) noexcept {
    const os::Lock lock(mutex_);
    return ledger_.enter(entry, block);
  }

  void put_back(LedgerEntry& entry) noexcept {
    entry.stream = {};  // without the lock: it may be the last handle
    const os::Lock lock(mutex_);
    ledger_.put_back(entry);
  }

  Failure refused(const Failure& failure) noexcept {
    const os::Lock lock(mutex_);
    ++refused_;
    return failure;
  }

  // Acquires no lock and uses no heap: this thread may have been interrupted inside either.
  Failure reentered(const Request& request) const noexcept {
    const Outside outside;
    report_misuse({.kind = MisuseKind::reentrancy,
                   .allocator = name_,
                   .device = device().key(),
                   .bytes = request.bytes,
                   .tag = request.tag,
                   .here = call_site(request.site)});
    return kReentered;
  }

  void report(MisuseKind kind, const LedgerEntry& entry, std::size_t offset) const noexcept {
    const Outside outside;
    report_misuse({.kind = kind,
                   .allocator = name_,
                   .device = entry.block.device.key(),
                   .address = entry.block.data,
                   .bytes = entry.block.bytes,
                   .tag = entry.block.tag,
                   .offset = offset,
                   .allocated = entry.allocated,
                   .freed = entry.freed});
  }

  // ---- Allocation.

  Status ask_upstream(const Request& request, const Block& block, LedgerEntry& entry) noexcept {
    const auto bytes = marks_.with_canary(request);
    if (!bytes) return kTooLarge;
    Request wider = request;
    wider.bytes = *bytes;
    entry.below = block;
    entry.below.bytes = *bytes;
    Status done = upstream_->obtain(wider, entry.below);
    if (done || (done.failure().code != ErrorCode::out_of_memory && done.failure().code != ErrorCode::busy)) return done;
    // In a hold, entries that would have to be unmapped or waited for stay.
    const bool held = is_held();
    const auto wanted = [held](const LedgerEntry& old) noexcept { return !held || !(old.guard || old.was_written); };
    return empty_quarantine(wanted) ? upstream_->obtain(wider, entry.below) : done;
  }

  // Adds guard pages, zeros and the canary. On failure the block has been freed upstream.
  Status prepare(const Request& request, Block& block, LedgerEntry& entry) noexcept {
    block.data = entry.below.data;
    if (can_guard() && requests_.fetch_add(1, std::memory_order_relaxed) % options_.guard_every == 0) guard(request, block, entry);
    const bool held = is_held();
    Status cleared;
    // Guarded pages are zero already.
    if (options_.zero && !entry.guard) cleared = marks_.clear(entry, block.data, block.bytes, held);
    if (cleared)
      marks_.add_canary(entry, block, held);
    else
      give_upstream(entry, When::later);
    return cleared;
  }

  void guard(const Request& request, Block& block, LedgerEntry& entry) noexcept {
    const auto pages = live_guards_.load(std::memory_order_relaxed) < kMostGuarded && !is_held()
                           ? make_guarded(request.bytes, request.alignment)
                           : std::nullopt;
    (pages ? guarded_ : unguarded_).fetch_add(1, std::memory_order_relaxed);
    if (!pages) return;
    live_guards_.fetch_add(1, std::memory_order_relaxed);
    entry.guard = *pages;
    block.data = pages->data;
    const os::Lock lock(mutex_);
    guarded_bytes_ += pages->pages_bytes;
    peak_guarded_bytes_ = std::max(peak_guarded_bytes_, guarded_bytes_);
  }

  // ---- Free.

  void look_at_canary(LedgerEntry& entry, bool held) noexcept {
    if (const auto offset = marks_.change_of_canary(entry, held)) report(MisuseKind::overflow, entry, *offset);
  }

  // Makes a use after free detectable: by a fault, or by poison that is checked later.
  void spoil(LedgerEntry& entry, bool held) noexcept {
    if (!entry.guard || held || !Marks::is_idle(entry, held) || !close_guarded(entry.guard)) return marks_.poison(entry, held);
    entry.is_closed = true;
    entry.has_canary = false;  // it is inaccessible
    const os::Lock lock(mutex_);
    guarded_bytes_ -= entry.guard.pages_bytes;
  }

  void add_to_quarantine(LedgerEntry& entry) noexcept {
    {
      const os::Lock lock(mutex_);
      ledger_.quarantine(entry);
    }
    keep_quarantine_in_bounds();
  }

  void keep_quarantine_in_bounds() noexcept {
    while (LedgerEntry* const entry = take_over_bounds()) leave(*entry, When::later);
  }

  LedgerEntry* take_over_bounds() noexcept {
    const os::Lock lock(mutex_);
    const bool over = ledger_.quarantined() > options_.quarantine_blocks || ledger_.quarantined_bytes() > options_.quarantine_bytes;
    return over && !holds_.any() ? ledger_.take_quarantined(any) : nullptr;
  }

  // Returns whether there was any.
  template <class Wanted>
  bool empty_quarantine(Wanted wanted) noexcept {
    bool some = false;
    while (true) {
      LedgerEntry* entry = nullptr;
      {
        const os::Lock lock(mutex_);
        entry = ledger_.take_quarantined(wanted);
      }
      if (entry == nullptr) return some;
      some = true;
      leave(*entry, entry->leaves_now ? When::now : When::later);
    }
  }

  void leave(LedgerEntry& entry, When when) noexcept {
    const bool held = is_held();
    if (!held) Marks::finish(entry);
    if (const auto offset = marks_.change_of_poison(entry, held)) report(MisuseKind::use_after_free, entry, *offset);
    look_at_canary(entry, held);
    give_upstream(entry, when);
    entry.stream = {};  // without the lock: it may be the last handle
    const os::Lock lock(mutex_);
    ledger_.forget(entry);
  }

  // REQUIRES: the caller owns the entry exclusively.
  void give_upstream(LedgerEntry& entry, When when) noexcept {
    if (entry.guard) {
      release_guarded(entry.guard);
      live_guards_.fetch_sub(1, std::memory_order_relaxed);
      const os::Lock lock(mutex_);
      guarded_bytes_ -= entry.is_closed ? 0 : entry.guard.pages_bytes;
    }
    const BlockVerdict freed = upstream_->give_back(entry.below, when, nullptr);
    // The block was freed upstream without the adaptor.
    if (freed != BlockVerdict::ok) report(MisuseKind::double_free, entry, 0);
  }

  const CheckOptions options_;
  const std::string name_;
  const Marks marks_;
  // relaxed, all of them: they are counters, and order nothing.
  std::atomic<std::uint64_t> requests_{0};
  std::atomic<std::uint64_t> guarded_{0};
  std::atomic<std::uint64_t> unguarded_{0};
  std::atomic<std::uint64_t> live_guards_{0};

  mutable os::Mutex mutex_;
  mutable Ledger ledger_ BERTH_GUARDED_BY(mutex_);
  HoldCount holds_ BERTH_GUARDED_BY(mutex_);
  std::uint64_t refused_ BERTH_GUARDED_BY(mutex_) = 0;
  std::size_t guarded_bytes_ BERTH_GUARDED_BY(mutex_) = 0;  // of guarded pages that are accessible
  std::size_t peak_guarded_bytes_ BERTH_GUARDED_BY(mutex_) = 0;
};

}  // namespace

std::shared_ptr<CheckAdaptor> check(std::shared_ptr<Allocator> upstream, const CheckOptions& options) {
  if (options.canary_bytes > kMostCanary) {
    throw ArgumentError(ErrorCode::invalid_argument,
                        {text::join("check with canary_bytes=", options.canary_bytes), "every block would be followed by that many bytes",
                         "use at most 64 KiB"},
                        {{"canary_bytes", options.canary_bytes}});
  }
  return std::make_shared<Checked>(std::move(upstream), options);
}

}  // namespace berth
