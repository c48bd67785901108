// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "berth/base/result.h"
#include "memory/hold_count.h"
#include "memory/pool/cache_set.h"
#include "memory/pool/pool_core.h"
#include "memory/pool/regions.h"
#include "memory/pool/stream_book.h"
#include "memory/space/page_lender.h"

// How a pool gets memory and releases it: everything that is tried before a request is refused (escalation.h),
// decay, trims, holds, and the pools that exchange pages with this one (docs/decisions/0012-private-pools.md).
namespace berth::internal::memory {

class Supply final : public PageLender {
 public:
  // `parent`: of a private pool, the supply that it borrows pages from, with its pool kept alive.
  Supply(PoolCore& core, StreamBook& book, CacheSet& caches, Regions& regions, std::shared_ptr<Supply> parent) noexcept
      : core_(core), book_(book), caches_(caches), regions_(regions), parent_(std::move(parent)) {}

  // Opens the range, and makes room for a stream in all tables; its number. With the mutex; releases it.
  Result<std::uint32_t> ready(StreamRef stream) noexcept {
    const std::uint32_t number = book_.find(stream);
    return number < ready_streams_ && (number != 0 || !stream) ? number : make_ready(stream);  // nearly always the first
  }
  // The calling thread's cache for a stream; nullptr when there can be none. Without the mutex.
  ThreadCache* cache_for(StreamRef stream) noexcept {
    return caches_.find_or_add(stream, [&] { return ready(stream); });
  }

  // ---- With the mutex, which they release.

  // Returns idle memory to the device as a side effect of a free: now and then a few pages.
  void poll_decay() noexcept;
  enum class Decayed : bool { a_few_pages, all };
  void decay(Decayed how_much) noexcept BERTH_NO_THREAD_ANALYSIS;
  // Returns cached memory that, with the tables, is more than the pool ever needed at one time: tables grow
  // when a program turns to smaller blocks, while what its larger ones have left is cached. A few pages.
  void release_excess() noexcept;
  // Whether so many bytes more would be more than was ever needed at one time.
  bool would_need_more(std::size_t bytes) const noexcept {
    return needed() + bytes > std::max(peak_need_, core_.space.figures().peak_live);
  }
  // Returns the pages around what was just freed, or at the end of the hold all that is free.
  void give_pages_back(std::size_t begin, std::size_t bytes) noexcept;
  // Returns the range when no stream can touch it any more. Does not wait: the last handle of a pool may be
  // dropped in a stream's own work. If the streams take no work behind theirs, the range stays. Called by the
  // destructor.
  void close() noexcept BERTH_NO_THREAD_ANALYSIS;

  bool is_held() const noexcept { return holds_.any(); }  // with the mutex
  // Whether the device may be asked for more than the bytes of a request: not in a hold, nor where they are cached in
  // a pool with reserved memory.
  bool may_ask_for_more_than(std::size_t bytes) const noexcept {
    return !holds_.any() && (reserved_ == 0 || core_.space.longest_cached() < bytes);
  }

  // ---- Without the mutex.

  void trim(std::size_t keep_bytes) noexcept;
  void trim_idle() noexcept;
  Status reserve(std::size_t bytes) noexcept;
  void begin_hold() noexcept;
  void end_hold() noexcept;

  // Private pools and their parent. A private pool's pages come from its parent before the device is asked.
  const Supply* parent() const noexcept { return parent_.get(); }
  const PoolCore& core() const noexcept { return core_; }
  void add_child(const std::shared_ptr<Supply>& child);
  std::size_t lend(std::span<const std::size_t> wanted, std::span<Loan> loans) noexcept override;
  void settle(std::span<const Loan> loans) noexcept override;
  bool adopt(std::byte* pages, std::size_t bytes) noexcept override;

 private:
  friend class Escalation;
  struct Child {
    bool exists = false;
    std::shared_ptr<Supply> supply;  // nullptr: gone
  };

  // Flushes all caches and dissolves all regions, so that all that can be free without a stream is in the space;
  // `gather` settles the streams too.
  void empty_caches() noexcept {
    caches_.flush_all();
    regions_.dissolve_all();
  }
  void gather(StreamBook::Wait wait) noexcept {
    empty_caches();
    book_.settle(wait);
  }
  Result<std::uint32_t> make_ready(StreamRef stream) noexcept;
  bool is_usable() const noexcept { return !holds_.any() && !core_.is_inherited() && core_.is_open(); }
  // Makes the pools that exchange pages with this one release what they have cached, as far as they may. False:
  // there are none. With the mutex; releases it.
  bool press_relatives() noexcept BERTH_NO_THREAD_ANALYSIS;
  void release_to_relatives() noexcept;
  Child child_at(std::size_t index) const noexcept;
  std::size_t needed() const noexcept { return core_.space.figures().live + core_.entries.used_bytes(); }

  PoolCore& core_;
  StreamBook& book_;
  CacheSet& caches_;
  Regions& regions_;
  const std::shared_ptr<Supply> parent_;
  std::vector<std::weak_ptr<Supply>> children_;
  HoldCount holds_;
  bool trim_after_hold_ = false;
  std::uint32_t ready_streams_ = 0;  // the slabs and the space have room for streams of lower numbers
  std::uint32_t polls_ = 0;
  std::size_t reserved_ = 0;   // committed memory below this does not decay
  std::size_t peak_need_ = 0;  // of live memory and the entries of its blocks together
};

}  // namespace berth::internal::memory
