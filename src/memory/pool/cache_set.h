// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "berth/memory/allocator.h"
#include "memory/cache/thread_cache.h"
#include "memory/pool/pool_core.h"
#include "memory/pool/stream_book.h"
#include "memory/published_list.h"
#include "os/process/fork.h"

// The thread caches of a pool, by number: small blocks, and in each cache at most one large block. A cache
// belongs to its thread, which enters and leaves through the gate without the mutex; a thread that has shut all
// gates (Shut) owns all caches.
namespace berth::internal::memory {

class CacheSet final : public CacheOwner, private os::ForkListener {
 public:
  // `pool` is the allocator that keeps this alive.
  CacheSet(PoolCore& core, StreamBook& book, Allocator& pool) noexcept;
  using os::ForkListener::listen;          // when the pool is complete
  using os::ForkListener::stop_listening;  // first of all when the pool is destroyed

  // The calling thread's cache for a stream, added if there is none; nullptr when there can be none. `ready`
  // returns the stream's number; it runs with the mutex, and may release it.
  template <class Ready>
  ThreadCache* find_or_add(StreamRef stream, const Ready& ready) noexcept;
  // The calling thread's cache if it used one of this pool last, else nullptr.
  ThreadCache* front() const noexcept { return t_front.allocator == core_.id ? t_front.cache : nullptr; }
  // The calling thread's cache of that number, else nullptr. It becomes the thread's front cache.
  ThreadCache* find_own(std::uint32_t number) const noexcept;
  // REQUIRES: a live block, or one that was, has this number as its owner.
  ThreadCache& operator[](std::uint32_t number) const noexcept { return caches_[number]; }
  std::uint32_t count() const noexcept { return caches_.count(); }
  // Whether a cache, or the pool itself, has ever handed out a block with such a serial.
  bool was_issued(std::uint64_t serial) const noexcept { return serial != 0 && BlockEntry::owner_of(serial) <= count(); }

  // Whether an entry, of a small or a medium block, is that of a live block. REQUIRES: the caller owns the entry, or
  // takes the answer as a guess.
  BlockVerdict judge(BlockRef entry, const Block& block) const noexcept;

  // Enters a cache that is the calling thread's. False: its stream is gone, and the gate stays shut.
  [[nodiscard]] bool enter(ThreadCache& cache) const noexcept;

  // While it lives, the caller owns every cache, or one, by its number (0: none). With the mutex.
  class Shut {
   public:
    explicit Shut(const CacheSet& caches) noexcept : Shut(caches, 1, caches.count()) {}
    Shut(const CacheSet& caches, std::uint32_t number) noexcept : Shut(caches, std::max(number, 1U), number) {}
    ~Shut() {
      if (first_ <= last_) caches_.reopen(first_, last_);
    }
    Shut(const Shut&) = delete;
    Shut& operator=(const Shut&) = delete;

   private:
    Shut(const CacheSet& caches, std::uint32_t first, std::uint32_t last) noexcept : caches_(caches), first_(first), last_(last) {
      if (first_ <= last_) caches_.shut(first_, last_);
    }

    const CacheSet& caches_;
    const std::uint32_t first_;
    const std::uint32_t last_;
  };

  // Takes in the blocks that other threads have freed, and only now counts them as freed. At most one inbox
  // full, because other threads may keep sending. Without the mutex too. REQUIRES: as below.
  enum class IntoBins : bool { no, yes };
  void read_inbox(ThreadCache& cache, Spill& spill, IntoBins into_bins) noexcept;

  // ---- With the mutex. REQUIRES: the caller owns the cache, or has shut the gates.

  // Reads the inbox, and returns the blocks to the slabs.
  void drain_inbox(ThreadCache& cache) noexcept;
  void return_to_slabs(std::span<const BlockRef> blocks) noexcept;
  void flush(ThreadCache& cache) noexcept;
  void flush_class(SizeClass size_class) noexcept;  // of all caches. REQUIRES: the gates are shut

  // The large block that stays with a thread, live or free (large_blocks.cc).
  bool may_keep(const ThreadCache& cache, const PoolExtent& extent) const noexcept;
  // REQUIRES: the block is free.
  void keep(ThreadCache& cache, BlockRef block, PoolExtent& extent) noexcept;
  void end_keeping(ThreadCache& cache) noexcept;

  // ---- With the mutex.

  void flush_all() noexcept;
  void flush_unused() noexcept;  // the same when no other thread uses the pool any more, with the gates open
  // Makes the caches of a stream unreachable: their gates stay shut, and their blocks return to the slabs.
  void retire_stream(std::uint32_t stream) noexcept;

  // Of all caches. REQUIRES: the gates are shut.
  void take_bytes() const noexcept;
  BlockCounts counts() const noexcept;
  struct SentHome {
    std::size_t bytes = 0;
    std::uint64_t blocks = 0;
  };
  SentHome sent_home() const noexcept;  // freed by other threads, and still in an inbox
  std::string audit() const;

  // ---- Any thread.

  // Reports the double frees that were found in inboxes.
  void report_late_double_frees() noexcept;
  void thread_ended(ThreadCache* cache) noexcept override;  // another thread may have it

 private:
  static constexpr std::uint32_t kMostCaches = (1U << BlockEntry::kOwnerBits) - 1;

  // A cache for the calling thread: one that has no thread any more, or a new one; nullptr when there can be
  // none.
  ThreadCache* add(std::uint32_t stream, std::uint64_t stream_id) noexcept;
  ThreadCache* make() noexcept;
  static void use_for(ThreadCache& cache, std::uint32_t stream, std::uint64_t stream_id) noexcept;
  // Its thread has left it: another may have it.
  void disown(ThreadCache& cache) noexcept;
  // The gates of the caches with these numbers.
  void shut(std::uint32_t first, std::uint32_t last) const noexcept;
  void reopen(std::uint32_t first, std::uint32_t last) const noexcept;
  template <class Visit>
  void for_each(Visit visit) const {
    for (std::uint32_t i = 1; i <= count(); ++i) visit((*this)[i]);
  }
  void flush_bin(ThreadCache& cache, SizeClass size_class) noexcept;
  std::string audit(const ThreadCache& cache) const;
  void before_fork() noexcept override;
  void after_fork(bool in_child) noexcept override;

  PoolCore& core_;
  StreamBook& book_;
  Allocator& pool_;
  PublishedList<ThreadCache, kMostCaches> caches_;
  std::vector<std::uint32_t> idle_;                  // by stream: the first cache without a thread, 0: none
  std::uint32_t idle_retired_ = 0;                   // the same of those whose stream is gone
  std::atomic<std::uint32_t> late_double_frees_{0};  // found when an inbox was read, not yet reported
  std::size_t kept_bytes_ = 0;                       // of large blocks that stay with their threads
};

template <class Ready>
ThreadCache* CacheSet::find_or_add(StreamRef stream, const Ready& ready) noexcept {
  if (ThreadCache* const found = ThreadCaches::find(core_.id, stream.state())) return found;
  if (!ThreadCaches::reserve()) return nullptr;
  ThreadCache* added = nullptr;
  {
    const os::Lock lock(core_.mutex);
    const Result<std::uint32_t> number = ready();
    while (ThreadCache* const retired = ThreadCaches::forget_retired(core_.id)) disown(*retired);
    if (number) added = add(*number, stream.id());
  }
  // Kept as a weak pointer: the thread keeps no pool alive, and when it ends it calls thread_ended of one that
  // lives.
  if (added == nullptr) return nullptr;
  added->stream_state = stream.state();
  ThreadCaches::enter(std::shared_ptr<CacheOwner>(pool_.shared_from_this(), this), {core_.id, stream.state(), added});
  return added;
}

}  // namespace berth::internal::memory
