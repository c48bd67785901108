// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "berth/base/result.h"
#include "device/stream_clock.h"
#include "memory/extra_uses.h"
#include "memory/pool/pool_core.h"
#include "memory/stream_uses.h"

// Which streams may still use memory that was freed in a pool. Freed memory belongs to the stream it was freed
// on, and to every other once that stream is known to be past the free (StreamUses); a block that several
// streams use waits here until each of them is (ExtraUses). All functions with the mutex.
namespace berth::internal::memory {

class StreamBook {
 public:
  explicit StreamBook(PoolCore& core) : core_(core) {}

  // Numbers of streams, as StreamUses has them: 0 is no stream.
  std::uint32_t find(StreamRef stream) const noexcept { return uses_.find(stream); }
  std::uint32_t find(std::uint64_t stream_id) const noexcept { return uses_.find(stream_id); }
  std::uint32_t add(StreamRef stream) noexcept { return uses_.add(stream); }
  std::uint64_t id_of(std::uint32_t number) const noexcept { return uses_[number].id; }
  // The stream that a block returns to.
  std::uint32_t stream_of(BlockRef block) const noexcept;

  static constexpr Failure kNoHeap{ErrorCode::out_of_memory, 0, "no heap for the block's list of streams"};
  // Notes that a stream, by its number, uses a live block in addition to the block's own; nothing for no stream
  // or its own. Fails when there is no heap. REQUIRES: the caller owns the entry.
  Status note_use(BlockRef block, StreamRef stream, std::uint32_t number) noexcept;
  // Whether a block that is freed must wait here for other streams; then it does, and `release` follows by
  // itself.
  bool must_wait(BlockRef block) noexcept { return !extra_.empty() && extra_.free(block.cookie(), uses_); }
  // Returns the memory of a freed block that is in no cache: to its slab, or as an extent to the space.
  void release(BlockRef block) noexcept;
  // The same for an extent, on the stream that it says.
  void release(PoolExtent* extent) noexcept;

  bool has_several_streams() const noexcept { return uses_.streams() > 1; }
  bool any_pending() const noexcept { return uses_.any_pending(); }
  // Learns what can be known without a query: how far others have seen the streams get and, for the stream of a
  // request, what it waits for. True when more memory may be usable. Releases the mutex.
  bool take_known(std::uint32_t stream) noexcept BERTH_NO_THREAD_ANALYSIS;
  // Queries the streams that freed memory waits for, or waits for them; every stream may then use the memory
  // that they are past. Releases the mutex.
  enum class Wait : bool { no, yes };
  void settle(Wait wait) noexcept;
  // Waits until a stream is past a free. False when that cannot be known, or this thread must not wait. Releases the
  // mutex.
  bool wait_for(std::uint32_t stream, std::uint64_t point) noexcept BERTH_NO_THREAD_ANALYSIS;
  // Waits for the oldest free that is not over. False when there is none, or this thread must not wait. Releases the
  // mutex.
  bool wait_for_oldest() noexcept BERTH_NO_THREAD_ANALYSIS;
  // How many such waits a request has at most: other threads may go on freeing. A block that other streams use waits
  // for its own stream behind them.
  std::size_t most_waits() const noexcept { return 2 * uses_.most_waits(); }
  // Marks the frees of a pool that several streams use, or whose pieces had better be cut, so that its memory is known to
  // be free as soon as it is, whatever work the streams get later. To be called after frees that reach the pool. Releases the mutex.
  void mark_frees() noexcept BERTH_NO_THREAD_ANALYSIS;

  // Refuses memory for a stream that is being captured into a graph, unless the pool's pages stay at their
  // addresses: each run of the graph uses the memory that was freed during the capture again, long after the
  // stream's events say that its work is done. Releases the mutex.
  Status refuse_capture(std::uint32_t stream) noexcept BERTH_NO_THREAD_ANALYSIS;

  // Frees the numbers of streams that have no other handle and whose work is done, after `retiring(number)` for
  // each. Releases the mutex.
  template <class Retiring>
  void retire_streams(const Retiring& retiring) noexcept {
    for (std::uint32_t i = 1; i < uses_.count(); ++i) {
      if (uses_[i].is_ours_alone()) retire_if_over(i, std::cref(retiring));
    }
    (void)release_extra(0, nullptr);
  }

  // Enqueues work behind everything that may still touch freed memory. False when a stream does not take it.
  bool enqueue_behind_pending(std::function<void()> work) noexcept { return uses_.enqueue_behind_pending(std::move(work)); }

  // `visit(block)` for each freed block that waits for streams.
  template <class Visit>
  void for_each_waiting(Visit visit) const {
    extra_.for_each_freed([&](ExtraUses::Key key) { visit(BlockRef(key)); });
  }
  std::string audit() const;

 private:
  bool take_ordered(std::uint32_t stream) noexcept BERTH_NO_THREAD_ANALYSIS;
  void query_streams(Wait wait) noexcept BERTH_NO_THREAD_ANALYSIS;
  // Releases the blocks that wait for no stream any more; also those of `stream` that its clock orders behind
  // the others. False when there was none.
  bool release_extra(std::uint32_t stream, const device::StreamClock* clock) noexcept;
  bool learn(std::uint32_t number, StreamUses::Question& question) noexcept;
  void retire_if_over(std::uint32_t number, const std::function<void(std::uint32_t)>& retiring) noexcept BERTH_NO_THREAD_ANALYSIS;

  PoolCore& core_;
  StreamUses uses_;
  ExtraUses extra_;  // by the block's cookie. A freed block that waits there is counted as cached
};

}  // namespace berth::internal::memory
