// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

// What is known of the order between streams. Both are shared: by the stream, by its events, and by the clocks of streams that wait for
// them.
namespace berth::internal::device {

// How far a stream is known to have got.
class StreamProgress {
 public:
  explicit StreamProgress(std::uint64_t stream_id) noexcept : stream_id_(stream_id) {}

  std::uint64_t stream_id() const noexcept { return stream_id_; }
  // acquire: whoever learns here that work is done may touch what it wrote.
  std::uint64_t done() const noexcept { return done_.load(std::memory_order_acquire); }
  void raise(std::uint64_t point) noexcept {
    std::uint64_t before = done_.load(std::memory_order_relaxed);
    // release: for `done`. acquire: a point that is raised over another passes on what came with that one.
    while (before < point && !done_.compare_exchange_weak(before, point, std::memory_order_acq_rel, std::memory_order_relaxed)) {
    }
  }

 private:
  const std::uint64_t stream_id_;
  std::atomic<std::uint64_t> done_{0};
};

// For other streams, the latest point that something comes after. Never changed once others can see it.
class StreamClock {
 public:
  struct Entry {
    std::shared_ptr<StreamProgress> progress;
    std::uint64_t point;
  };
  // Programs that make a stream for each step must not carry all of them along: what was learnt longest ago is forgotten.
  static constexpr std::size_t kMost = 64;

  // The point of a stream; 0 when nothing is known.
  std::uint64_t point_of(std::uint64_t stream_id) const noexcept;
  const std::vector<Entry>& entries() const noexcept { return entries_; }

  // `known`, and an event of a stream with what that comes after; null when that is nothing new to the stream `own`. Throws bad_alloc.
  static std::shared_ptr<const StreamClock> merged(const StreamClock* known, Entry event, const StreamClock* with, std::uint64_t own);

 private:
  void add(const Entry& entry);

  std::vector<Entry> entries_;  // what was learnt last comes first; one for each stream, at most kMost
};

}  // namespace berth::internal::device
