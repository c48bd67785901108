// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "berth/device/backend.h"
#include "berth/memory/pool.h"
#include "memory/cache/block_table.h"
#include "memory/cache/size_classes.h"
#include "memory/cache/thread_cache.h"
#include "memory/extra_uses.h"
#include "memory/hold_count.h"
#include "memory/pool/slabs.h"
#include "memory/pool/space.h"
#include "memory/stream_uses.h"
#include "os/lock/gate.h"
#include "os/lock/mutex.h"
#include "os/process/fork.h"

// The pool: what a request meets on its way down.
//
//     obtain ─► the thread's bin of the size class ──────────────────── the usual end, no lock
//                 or the large block that it keeps
//                 │ empty: look into the inbox, else a batch from
//                 ▼
//               Slabs ─► Space (extents, pages) ─► Backend               under the mutex; without it while at the device
//                 ▲
//     large ──────┘
//
// Every free ends where the block came from: its owner's bin, by way of the inbox when another thread frees it.
namespace berth::internal::memory {

class Pool final : public Allocator, public PageLender, public CacheOwner, private os::ForkListener {
 public:
  Pool(Device device, const PoolOptions& options);
  Pool(std::shared_ptr<Pool> parent, const PrivatePoolOptions& options);
  ~Pool() override;

  Status obtain(const Request& request, Block& block) noexcept override;
  BlockVerdict give_back(const Block& block, When when, Block* known) noexcept override;
  bool grow(Block& block, std::size_t bytes) noexcept override;
  Result<BlockVerdict> note_use(const Block& block, StreamRef stream) noexcept override;
  void trim(std::size_t keep_bytes) override;
  void trim_idle() override;
  void reserve(std::size_t bytes) override;
  void begin_hold() noexcept override;
  void end_hold() noexcept override;
  Stats stats() const override;
  std::vector<Holder> holders() const override;
  std::span<const std::byte> range() const noexcept override;
  std::string name() const override { return is_private() ? "private_pool" : "pool"; }
  std::string settings() const override;
  std::string audit() const override;
  void explain(const Failure& failure, OutOfMemoryReport& report) const override;
  void list_blocks(Snapshot& snapshot) const override;  // in pool_snapshot.cc

  // For private pools, in pool_private.cc.
  std::size_t lend(std::span<const std::size_t> wanted, std::span<Loan> loans) noexcept override;
  void settle(std::span<const Loan> loans) noexcept override;
  bool adopt(std::byte* pages, std::size_t bytes) noexcept override;
  bool is_private() const noexcept { return parent_ != nullptr; }
  void add_child(const std::shared_ptr<Pool>& child);

  void retire(ThreadCache* cache) noexcept override;

 private:
  friend class PoolWalk;
  static constexpr std::uint32_t kMostCaches = 4096;
  static constexpr Failure kOverLimit{ErrorCode::out_of_memory, 0, "the pool's limit", Refusal::strategy_limit};
  static constexpr Failure kOverPrivateLimit{ErrorCode::out_of_memory, 0, "the private pool's limit", Refusal::private_limit};
  static constexpr std::size_t kBatch = 16;  // blocks fetched from the slabs at a time, at most
  static constexpr Failure kNoTables{ErrorCode::out_of_memory, 0, "no heap for the pool's tables"};

  // Small blocks, in pool_small.cc.
  Status obtain_slowly(const Request& request, Block& block) noexcept;
  Status obtain_small(const Request& request, Block& block) noexcept;
  Status obtain_without_cache(SizeClass size_class, const Request& request, Block& block) noexcept;
  ThreadCache* cache_for(StreamRef stream) noexcept;
  ThreadCache* make_cache(std::uint32_t stream, std::uint64_t stream_id) noexcept BERTH_REQUIRES(mutex_);
  static void reuse(ThreadCache& cache, std::uint32_t stream, std::uint64_t stream_id) noexcept;
  [[nodiscard]] bool enter(ThreadCache& cache) noexcept;
  void hand_out(ThreadCache& cache, BlockEntry* entry, const Request& request, Block& block) noexcept;
  Status refill(ThreadCache& cache, SizeClass size_class, std::span<BlockEntry*> batch, Spill& spill, std::size_t& count_taken) noexcept;
  std::size_t batch_of(SizeClass size_class) const noexcept;
  void make_room(ThreadCache& cache, SizeClass size_class, Spill& spill) noexcept;
  void shrink_a_bin(ThreadCache& cache, SizeClass but_not, Spill& spill) noexcept;
  static void spill_first(ThreadCache& cache, Bin& bin, std::uint32_t count, Spill& spill) noexcept;
  enum class IntoBins : bool { no, yes };
  void read_inbox(ThreadCache& cache, Spill& spill, IntoBins into_bins) noexcept;
  void return_spill(const Spill& spill) noexcept;
  void return_to_slabs(std::span<BlockEntry* const> entries) noexcept BERTH_REQUIRES(mutex_);
  void report_late_double_frees() noexcept;

  BlockVerdict free_small(BlockEntry* entry, const Block& block) noexcept;
  BlockVerdict free_own(ThreadCache& cache, BlockEntry* entry, const Block& block) noexcept;
  BlockVerdict send_home(ThreadCache& owner, BlockEntry* entry, const Block& block) noexcept;
  BlockVerdict free_under_lock(BlockEntry* entry, const Block& block, When when) noexcept;

  struct Setup {
    PoolOptions options;
    std::size_t page_bytes;
    Budget* below;
    std::shared_ptr<Pool> parent = nullptr;
    bool fixed_pages = false;
  };
  Pool(Backend& backend, Setup setup);

  // Makes the other pools that share this one's pages give up what they have cached, as far as they may. True: there are some. Lets go of
  // the lock.
  bool press_relatives() noexcept BERTH_REQUIRES(mutex_);
  struct Child {
    bool exists = false;
    std::shared_ptr<Pool> pool;  // nullptr: gone
  };
  Child child_at(std::size_t index) const noexcept;
  void give_up_cache() noexcept;

  // Blocks that grow in place, in pool_grow.cc.
  bool may_grow(const BlockEntry* entry, const Block& block, std::size_t bytes) const noexcept;
  bool grow_small(BlockEntry* entry, Block& block, std::size_t bytes) noexcept;
  bool grow_in_cache(ThreadCache& cache, BlockEntry* entry, Block& block, std::size_t bytes) noexcept;
  bool grow_large(BlockEntry* entry, Block& block, std::size_t bytes) noexcept;

  // Large blocks, in pool_large.cc.
  Status obtain_large(const Request& request, Block& block) noexcept;
  BlockVerdict judge_large(const BlockEntry* entry, const Block& block) const noexcept BERTH_REQUIRES(mutex_);
  BlockVerdict free_large(BlockEntry* entry, const Block& block, When when) noexcept;
  bool obtain_kept(const Request& request, Block& block) noexcept;
  bool may_keep(const ThreadCache& cache, const PoolExtent& extent) const noexcept BERTH_REQUIRES(mutex_);
  void keep(ThreadCache& cache, BlockEntry* entry, const PoolExtent& extent) noexcept BERTH_REQUIRES(mutex_);
  void end_keeping(ThreadCache& cache) noexcept BERTH_REQUIRES(mutex_);
  void recall(const BlockEntry* entry) noexcept BERTH_REQUIRES(mutex_);

  // What is common, in pool.cc.
  BlockVerdict give_back_slowly(Block block, When when, Block* known) noexcept;
  // Gives back what has been idle, in pool_decay.cc: a few pages, or all. Lets go of the lock.
  void poll_decay() noexcept BERTH_REQUIRES(mutex_);
  void decay(bool all) noexcept BERTH_REQUIRES(mutex_);
  BlockEntry* find_entry(Block& block) const noexcept;
  void give_pages_back(std::size_t begin, std::size_t bytes) noexcept BERTH_REQUIRES(mutex_);
  BlockVerdict judge(const BlockEntry* entry, const Block& block) const noexcept;
  bool was_issued(std::uint64_t serial) const noexcept;
  void complete(Block& known, const Block& block, const BlockEntry* entry) const noexcept;

  Status ready(StreamRef stream, std::uint32_t& index) noexcept BERTH_REQUIRES(mutex_);
  // Runs `attempt(effort)`, for memory on a stream, with growing effort until it succeeds or there is nothing left to try.
  template <class Attempt>
  Status with_effort(std::uint32_t stream, const Attempt& attempt) noexcept BERTH_REQUIRES(mutex_);
  void count_allocation(std::size_t bytes) noexcept BERTH_REQUIRES(mutex_);
  void count_free(std::size_t bytes) noexcept BERTH_REQUIRES(mutex_);
  Failure refused(const Failure& failure) noexcept BERTH_REQUIRES(mutex_);

  // Streams, in pool_streams.cc.
  Status check_capture(std::uint32_t stream) noexcept BERTH_REQUIRES(mutex_);
  bool take_known(std::uint32_t stream) noexcept BERTH_REQUIRES(mutex_);
  bool take_ordered(std::uint32_t stream) noexcept BERTH_REQUIRES(mutex_);
  void settle_streams(bool wait) noexcept BERTH_REQUIRES(mutex_);
  void ask_streams(bool wait) noexcept BERTH_REQUIRES(mutex_);
  bool release_extra(std::uint32_t stream, const device::StreamClock* clock) noexcept BERTH_REQUIRES(mutex_);
  void release(BlockEntry* entry) noexcept BERTH_REQUIRES(mutex_);
  std::uint32_t stream_of(const BlockEntry* entry) const noexcept BERTH_REQUIRES(mutex_);
  void retire_streams() noexcept BERTH_REQUIRES(mutex_);
  void close_in_turn() noexcept BERTH_NO_THREAD_ANALYSIS;  // REQUIRES: the mutex; the destructor's
  void retire_caches(std::uint32_t stream) noexcept BERTH_REQUIRES(mutex_);

  // While it lives, every cache is the caller's. REQUIRES: the mutex.
  class AllShut;
  void shut_caches() const noexcept;
  void reopen_caches() const noexcept;
  template <class Visit>
  void for_each_cache(Visit visit) const;
  void flush_caches() noexcept BERTH_REQUIRES(mutex_);
  void flush(ThreadCache& cache) noexcept BERTH_REQUIRES(mutex_);
  void flush_bin(ThreadCache& cache, SizeClass size_class) noexcept BERTH_REQUIRES(mutex_);
  void flush_class(SizeClass size_class) noexcept BERTH_REQUIRES(mutex_);
  void count_bytes(ThreadCache& cache) const noexcept BERTH_REQUIRES(mutex_);
  struct Counts {
    std::uint64_t allocations = 0;
    std::uint64_t frees = 0;

    std::uint64_t live() const noexcept { return allocations - frees; }
  };
  Counts counted() const noexcept BERTH_REQUIRES(mutex_);
  Stats stats_now() const noexcept BERTH_REQUIRES(mutex_);
  std::string audit_now() const BERTH_REQUIRES(mutex_);
  std::string audit_cache(const ThreadCache& cache) const BERTH_REQUIRES(mutex_);
  template <class Visit>
  void for_each_live(Visit visit) const BERTH_REQUIRES(mutex_);

  std::byte* base() const noexcept { return reinterpret_cast<std::byte*>(base_.load()); }
  bool is_inherited() const noexcept;
  // Whether the address sanitizer is told of what is free.
  bool poisons() const noexcept { return kAddressSanitizer && backend().properties().abilities.host_access; }
  void before_fork() noexcept override { shut_caches(); }
  void after_fork(bool in_child) noexcept override;

  const SizeClasses classes_;
  const std::size_t small_limit_;       // requests up to this are small
  const std::size_t usual_alignment_;   // that every small block has
  const std::shared_ptr<Pool> parent_;  // of a private pool: whose pages it shares
  const bool fixed_pages_;
  const std::size_t page_bytes_;
  Budget budget_;
  const std::chrono::milliseconds decay_period_;
  const double target_ratio_;
  const std::uint64_t generation_;
  BlockTable entries_;
  std::unique_ptr<std::atomic<ThreadCache*>[]> caches_;  // by number; entries are never taken away while the pool lives
  std::atomic<std::uint32_t> cache_count_{0};            // caches_[1] to caches_[cache_count_] are there

  Relaxed<std::size_t> cache_budget_;                // what each cache may keep, if it is more than the least
  std::atomic<std::uint32_t> late_double_frees_{0};  // found when an inbox was read, not yet reported

  mutable os::Mutex mutex_;
  Decay decay_ BERTH_GUARDED_BY(mutex_);
  std::uint32_t polls_ BERTH_GUARDED_BY(mutex_) = 0;
  std::size_t reserved_ BERTH_GUARDED_BY(mutex_) = 0;  // committed memory below this does not decay
  Space space_ BERTH_GUARDED_BY(mutex_);
  Slabs slabs_ BERTH_GUARDED_BY(mutex_);
  StreamUses streams_ BERTH_GUARDED_BY(mutex_);
  std::uint32_t ready_streams_ BERTH_GUARDED_BY(mutex_) = 0;            // the slabs and the space have room for streams of lower numbers
  std::vector<std::weak_ptr<Pool>> children_ BERTH_GUARDED_BY(mutex_);  // private pools
  ExtraUses extra_ BERTH_GUARDED_BY(mutex_);             // by the number of the entry. A freed block that waits there is counted as cached
  std::size_t kept_bytes_ BERTH_GUARDED_BY(mutex_) = 0;  // of large blocks that stay with their threads
  HoldCount holds_ BERTH_GUARDED_BY(mutex_);
  bool trim_after_hold_ BERTH_GUARDED_BY(mutex_) = false;
  Relaxed<std::uintptr_t> base_;  // of the range, once there is one; whoever has a block has seen it set

  // Bytes: what the caches have told so far, and what needs no cache.
  mutable std::int64_t in_use_ BERTH_GUARDED_BY(mutex_) = 0;
  mutable std::int64_t peak_in_use_ BERTH_GUARDED_BY(mutex_) = 0;
  Counts counts_ BERTH_GUARDED_BY(mutex_);  // without what went through caches
  std::uint64_t failures_ BERTH_GUARDED_BY(mutex_) = 0;
  std::uint64_t serial_ BERTH_GUARDED_BY(mutex_) = 0;  // of blocks that no cache handed out
};

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

template <class Attempt>
Status Pool::with_effort(std::uint32_t stream, const Attempt& attempt) noexcept {
  Status done;
  if (streams_.any_pending()) {
    done = attempt(Space::Effort::cached_only);
    if (done) return done;
    if (take_known(stream)) done = attempt(Space::Effort::cached_only);
    if (done) return done;
    if (!holds_.any()) settle_streams(false);
  }
  if (holds_.any()) {
    done = attempt(Space::Effort::cached_only);
    if (done) return done;
    flush_caches();  // what threads keep is cached memory too, and the device is not asked for it
    return attempt(Space::Effort::cached_only);
  }
  if (const Status allowed = check_capture(stream); !allowed) return allowed;
  done = attempt(Space::Effort::usual);
  if (done || done.failure().code != ErrorCode::out_of_memory) return done;
  flush_caches();
  settle_streams(false);
  done = attempt(Space::Effort::all_pages);
  const auto go_on = [&]() BERTH_NO_THREAD_ANALYSIS { return !done && done.failure().code == ErrorCode::out_of_memory && !holds_.any(); };
  if (go_on() && streams_.any_pending()) {
    settle_streams(true);
    done = attempt(Space::Effort::all_pages);
  }
  if (go_on() && done.failure().cause != Refusal::private_limit && press_relatives()) done = attempt(Space::Effort::all_pages);
  return done;
}

}  // namespace berth::internal::memory
