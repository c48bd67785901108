// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

// The known order between streams (vector clocks). Both classes are shared by the stream, its events, and the
// clocks of streams that wait for them. Any thread.
namespace berth::internal::device {

// The latest point of a stream that is known to be done.
class StreamProgress {
 public:
  explicit StreamProgress(std::uint64_t stream_id) noexcept : stream_id_(stream_id) {}

  std::uint64_t stream_id() const noexcept { return stream_id_; }
  // acquire: a thread that sees the work done also sees what it wrote.
  std::uint64_t done() const noexcept { return done_.load(std::memory_order_acquire); }
  void raise(std::uint64_t point) noexcept {
    std::uint64_t before = done_.load(std::memory_order_relaxed);
    // release: pairs with `done`. acquire: a raise over another point passes on what was visible with that one.
    while (before < point && !done_.compare_exchange_weak(before, point, std::memory_order_acq_rel, std::memory_order_relaxed)) {
    }
  }

 private:
  const std::uint64_t stream_id_;
  std::atomic<std::uint64_t> done_{0};
};

// A vector clock: for other streams, the latest point that happens before an event or a stream's later work.
// Immutable once published.
class StreamClock {
 public:
  struct Entry {
    std::shared_ptr<StreamProgress> progress;
    std::uint64_t point;
  };
  // Bounded, for programs that make a stream for each step: the least recently learnt entries are dropped.
  static constexpr std::size_t kMost = 64;

  // The point of a stream; 0 when nothing is known.
  std::uint64_t point_of(std::uint64_t stream_id) const noexcept;
  const std::vector<Entry>& entries() const noexcept { return entries_; }

  // Merges `known` with an event and its clock `with`; null when that adds nothing for the stream `own`. Throws
  // bad_alloc.
  static std::shared_ptr<const StreamClock> merged(const StreamClock* known, Entry event, const StreamClock* with, std::uint64_t own);

 private:
  void add(const Entry& entry);

  std::vector<Entry> entries_;  // most recent first; one per stream, at most kMost
};

}  // namespace berth::internal::device
