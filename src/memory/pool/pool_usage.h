// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "berth/base/result.h"
#include "memory/cache/thread_cache.h"

// What a pool has handed out: the bytes that thread caches have reported so far, and everything that passed no
// cache. The pool's mutex guards it.
namespace berth::internal::memory {

struct BlockCounts {
  std::uint64_t allocations = 0;
  std::uint64_t frees = 0;

  std::uint64_t live() const noexcept { return allocations - frees; }
};

// Serials of blocks that no cache handed out: taken in batches, so that threads rarely meet where they are
// counted.
class SerialBatch {
 public:
  std::uint64_t next(std::atomic<std::uint64_t>& taken) noexcept {
    if (last_ % kBatch == 0) last_ = taken.fetch_add(kBatch, std::memory_order_relaxed);  // a number that guards no other memory
    return BlockEntry::make_serial(0, ++last_);
  }

 private:
  static constexpr std::uint64_t kBatch = 4096;
  std::uint64_t last_ = 0;
};

// What a part of a pool has handed out, or what it has since the pool last took it in.
class UsageShare {
 public:
  void allocated(std::size_t bytes) noexcept {
    in_use_ += static_cast<std::int64_t>(bytes);
    peak_ = std::max(peak_, in_use_);
    ++counts_.allocations;
  }
  void freed(std::size_t bytes) noexcept {
    in_use_ -= static_cast<std::int64_t>(bytes);
    ++counts_.frees;
  }
  void grew(std::size_t from, std::size_t to) noexcept {  // which counts as a free and an allocation
    freed(from);
    allocated(to);
  }

 protected:
  // Adds what a share has counted, and makes it empty.
  void take_share(UsageShare& share) noexcept {
    peak_ = std::max(peak_, in_use_ + share.peak_);
    in_use_ += share.in_use_;
    counts_.allocations += share.counts_.allocations;
    counts_.frees += share.counts_.frees;
    share = {};
  }

  std::int64_t in_use_ = 0;  // below zero while a share or a cache has not reported what others freed
  std::int64_t peak_ = 0;
  BlockCounts counts_;
};

// Its own functions count blocks that pass no cache.
class PoolUsage : public UsageShare {
 public:
  using UsageShare::take_share;
  Failure refused(const Failure& failure) noexcept {
    ++failures_;
    return failure;
  }

  // Takes over the bytes that a cache has counted: all that a peak needs. REQUIRES: the caller owns the cache,
  // or has shut the gates.
  void take_bytes(ThreadCache& cache) noexcept {
    peak_ = std::max(peak_, in_use_ + cache.peak_in_use());
    in_use_ += cache.in_use();
    cache.forget_bytes();
  }

  std::uint64_t next_serial() noexcept { return serials_.next(taken_serials_); }  // of a block that no cache handed out
  // The serials that all of them are taken from. Without the mutex too.
  std::atomic<std::uint64_t>& taken_serials() noexcept { return taken_serials_; }

  // Bytes of all blocks, once the counts of every cache have been taken over.
  std::size_t in_use() const noexcept { return static_cast<std::size_t>(in_use_); }
  std::size_t peak() const noexcept { return static_cast<std::size_t>(peak_); }
  const BlockCounts& counts() const noexcept { return counts_; }  // without what passed through caches
  std::uint64_t failures() const noexcept { return failures_; }

 private:
  std::uint64_t failures_ = 0;
  SerialBatch serials_;
  std::atomic<std::uint64_t> taken_serials_{0};
};

}  // namespace berth::internal::memory
