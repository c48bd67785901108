// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "berth/device/backend.h"
#include "berth/memory/allocator.h"
#include "memory/buckets/bucket_cache.h"
#include "memory/buckets/rounding.h"
#include "memory/extra_uses.h"
#include "memory/hold_count.h"
#include "memory/process_budget.h"
#include "memory/stream_uses.h"
#include "memory/usage.h"
#include "os/lock/mutex.h"
#include "os/process/fork.h"

// The implementation of `rounded` and `exact`, which differ in their rounding alone. Sizes are rounded, and
// each rounded size (with its alignment) is a bucket; a freed piece stays in its bucket until a request of the
// same bucket takes it, or it is released to the device.
//
//     obtain ─► the bucket: a piece freed on this stream, on none, or on another that is past it
//                 │ none: use what is known of the streams; query them; look again
//                 ▼
//               Backend::allocate ─► refused: release the cache, first without and then with waiting for
//                                    streams, and ask again
//
// Any thread. One lock, which is released around every call to a device or a stream; those functions say so.
namespace berth::internal::memory {

struct BucketRules {
  const char* name;  // a literal: "rounded"
  Rounding rounding;
  std::size_t limit_bytes = SIZE_MAX;  // the most memory it commits
  std::string settings;                // for people
};

// The granularity of allocations from the device: a page where a block has pages of its own, so that the counts
// are exact; 1 on hosts, whose blocks come from a heap.
std::size_t grain_of(const Backend& backend) noexcept;

class Buckets final : public Allocator {
 public:
  Buckets(Backend& backend, BucketRules rules);
  ~Buckets() override;

  Status obtain(const Request& request, Block& block) noexcept override;
  BlockVerdict give_back(const Block& block, When when, Block* known) noexcept override;
  bool grow(Block& block, std::size_t bytes) noexcept override;
  Result<BlockVerdict> note_use(const Block& block, StreamRef stream) noexcept override;
  Result<bool> locate(Block& block) noexcept override;
  void trim(std::size_t keep_bytes) override;
  void reserve(std::size_t bytes) override;
  void begin_hold() noexcept override;
  void end_hold() noexcept override;
  Stats stats() const override;
  std::vector<Holder> holders() const override;
  std::string name() const override { return rules_.name; }
  std::string settings() const override { return rules_.settings; }
  std::string audit() const override;
  void explain(const Failure& failure, OutOfMemoryReport& report) const override;
  void list_blocks(Snapshot& snapshot) const override;

 private:
  static constexpr Failure kOverLimit{ErrorCode::out_of_memory, 0, "the limit of its options is reached", Refusal::strategy_limit};

  // Returns a piece for the request, in state apart. Unlocks meanwhile.
  Result<Piece*> acquire(const Request& request) noexcept BERTH_REQUIRES(mutex_);
  Result<Piece*> find_or_make(Bucket& bucket, std::uint32_t stream) noexcept BERTH_REQUIRES(mutex_);
  Result<Piece*> make_after_releasing(Bucket& bucket, std::uint32_t stream, Failure failure) noexcept BERTH_REQUIRES(mutex_);
  Result<Piece*> make(Bucket& bucket) noexcept BERTH_REQUIRES(mutex_);
  void hand_out(Piece& piece, const Request& request) noexcept BERTH_REQUIRES(mutex_);

  // Releases the piece to the device as soon as its stream is done with it, or when the hold ends. Unlocks
  // meanwhile.
  void part_with(Piece* piece) noexcept BERTH_REQUIRES(mutex_);
  void part_with_kept_back() noexcept BERTH_REQUIRES(mutex_);
  // Releases cached pieces to the device, largest first, until at most `keep_bytes` are cached; returns whether
  // there were any. Unlocks meanwhile.
  bool release_cached_to(std::size_t keep_bytes) noexcept BERTH_REQUIRES(mutex_);
  void return_to_device(Piece* piece) noexcept BERTH_REQUIRES(mutex_);
  void free_in_turn() noexcept BERTH_NO_THREAD_ANALYSIS;  // the destructor's

  // Queries the progress of a stream that freed pieces wait for, or waits for it. Unlocks meanwhile.
  void settle(std::uint32_t stream, bool wait) noexcept BERTH_REQUIRES(mutex_);
  // Takes a piece that can be used on the stream by what is known without querying the device. Unlocks
  // meanwhile.
  Piece* take_known(Bucket& bucket, std::uint32_t stream) noexcept BERTH_REQUIRES(mutex_);
  // Moves freed pieces that no pending work of further streams can touch into the cache. Returns false when
  // there was none.
  bool release_extra() noexcept BERTH_REQUIRES(mutex_);
  // Whether a freed piece must wait for streams other than its own; if so, it is added to those that wait.
  bool waits_for_others(const Piece& piece) noexcept BERTH_REQUIRES(mutex_) {
    return !extra_.empty() && extra_.free(key_of(piece), streams_);
  }
  static ExtraUses::Key key_of(const Piece& piece) noexcept { return reinterpret_cast<std::uintptr_t>(piece.data); }
  void settle_all(bool wait) noexcept BERTH_REQUIRES(mutex_);

  // Enclose a call to the device that changes how much is committed. A thread that is refused meanwhile waits
  // for one change to end before it gives up.
  void begin_change() noexcept BERTH_REQUIRES(mutex_);
  void end_change() noexcept BERTH_REQUIRES(mutex_);
  bool await_change() noexcept BERTH_REQUIRES(mutex_);

  bool is_inherited() const noexcept;

  const BucketRules rules_;
  const std::size_t grain_;
  const bool poisons_;  // reports free memory to the address sanitizer
  Budget& budget_;      // of the process
  const os::Origin origin_;

  mutable os::Mutex mutex_;
  BucketCache cache_ BERTH_GUARDED_BY(mutex_);
  StreamUses streams_ BERTH_GUARDED_BY(mutex_);
  ExtraUses extra_ BERTH_GUARDED_BY(mutex_);      // by the address of the piece; freed ones that wait are apart
  PieceList kept_back_ BERTH_GUARDED_BY(mutex_);  // deallocate_now in a hold, or with extra uses: apart
  HoldCount holds_ BERTH_GUARDED_BY(mutex_);

  // usage_.committed_bytes() == sum of taken_bytes over all pieces + leaving_bytes_
  // usage_.committed_bytes() + coming_bytes_ <= rules_.limit_bytes
  Usage usage_ BERTH_GUARDED_BY(mutex_);
  std::uint64_t next_serial_ BERTH_GUARDED_BY(mutex_) = 1;
  HoldCount changes_ BERTH_GUARDED_BY(mutex_);                // device calls in progress in this process
  std::uint64_t changes_ended_ BERTH_GUARDED_BY(mutex_) = 0;  // so far
  std::size_t coming_bytes_ BERTH_GUARDED_BY(mutex_) = 0;     // being allocated
  std::size_t leaving_bytes_ BERTH_GUARDED_BY(mutex_) = 0;    // being freed: not in the table any more
  os::Condition change_ended_;
};

}  // namespace berth::internal::memory
