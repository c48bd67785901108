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
#include "os/lock/mutex.h"
#include "os/process/fork.h"

// The engine of `rounded` and `exact`, which differ in their rounding alone. Sizes are rounded, and each rounded size (with its alignment)
// is a bucket; what is freed stays in its bucket until a request of the same bucket takes it, or it goes back to the device.
//
//     obtain ─► the bucket: a piece freed on this stream, on none, or on another that is past it
//                 │ none: look at what is known of the streams; ask them; look again
//                 ▼
//               Backend::allocate ─► refused: give back all that is cached, once without and once with waiting for streams, and ask again
//
// One lock. It is let go wherever a device or a stream is asked; those functions say so.
namespace berth::internal::memory {

struct BucketRules {
  const char* name;  // a literal: "rounded"
  Rounding rounding;
  std::size_t limit_bytes = SIZE_MAX;  // the most memory it takes from the device
  std::string settings;                // for people
};

// What each block is a multiple of on its way from the device: where a block has pages of its own, a page, so that what is counted is
// what is taken; on hosts, whose blocks come from a heap, 1.
std::size_t grain_of(const Backend& backend) noexcept;

class Buckets final : public Allocator {
 public:
  Buckets(Backend& backend, BucketRules rules);
  ~Buckets() override;

  Status obtain(const Request& request, Block& block) noexcept override;
  BlockVerdict give_back(const Block& block, When when, Block* known) noexcept override;
  bool grow(Block& block, std::size_t bytes) noexcept override;
  Result<BlockVerdict> note_use(const Block& block, StreamRef stream) noexcept override;
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

  // A piece for the request, apart. Lets go of the lock.
  Result<Piece*> acquire(const Request& request) noexcept BERTH_REQUIRES(mutex_);
  Result<Piece*> find_or_make(Bucket& bucket, std::uint32_t stream) noexcept BERTH_REQUIRES(mutex_);
  Result<Piece*> make_after_releasing(Bucket& bucket, std::uint32_t stream, Failure failure) noexcept BERTH_REQUIRES(mutex_);
  Result<Piece*> make(Bucket& bucket) noexcept BERTH_REQUIRES(mutex_);
  void hand_out(Piece& piece, const Request& request) noexcept BERTH_REQUIRES(mutex_);

  BlockVerdict judge(const Piece* piece, const Block& block) const noexcept BERTH_REQUIRES(mutex_);
  // The piece goes to the device as soon as its stream is done with it, or when the hold ends. Lets go of the lock.
  void part_with(Piece* piece) noexcept BERTH_REQUIRES(mutex_);
  void part_with_kept_back() noexcept BERTH_REQUIRES(mutex_);
  // Gives cached pieces back, the largest first, until at most `keep_bytes` are cached; says whether any went. Lets go of the lock.
  bool release_cached_to(std::size_t keep_bytes) noexcept BERTH_REQUIRES(mutex_);
  void return_to_device(Piece* piece) noexcept BERTH_REQUIRES(mutex_);
  void free_in_turn() noexcept BERTH_NO_THREAD_ANALYSIS;  // the destructor's

  // Asks how far a stream is that freed pieces wait for, or waits for it. Lets go of the lock.
  void settle(std::uint32_t stream, bool wait) noexcept BERTH_REQUIRES(mutex_);
  // A piece that may be used on the stream, by what is known without asking. Lets go of the lock.
  Piece* take_known(Bucket& bucket, std::uint32_t stream) noexcept BERTH_REQUIRES(mutex_);
  // BlockVerdict pieces that no stream beside their own can be at work on go into the cache. False when there was none.
  bool release_extra() noexcept BERTH_REQUIRES(mutex_);
  // Whether a freed piece must wait for streams beside its own; then it does.
  bool waits_for_others(const Piece& piece) noexcept BERTH_REQUIRES(mutex_) {
    return !extra_.empty() && extra_.free(key_of(piece), streams_);
  }
  static ExtraUses::Key key_of(const Piece& piece) noexcept { return reinterpret_cast<std::uintptr_t>(piece.data); }
  void settle_all(bool wait) noexcept BERTH_REQUIRES(mutex_);

  // Around a call of the device that changes how much is taken. Whoever is refused meanwhile waits for one to end before giving up.
  void begin_change() noexcept BERTH_REQUIRES(mutex_);
  void end_change() noexcept BERTH_REQUIRES(mutex_);
  bool await_change() noexcept BERTH_REQUIRES(mutex_);

  bool is_inherited() const noexcept;

  const BucketRules rules_;
  const std::size_t grain_;
  const bool poisons_;  // the address sanitizer is told of what is free
  Budget& budget_;      // of the process
  const std::uint64_t generation_ = os::fork_generation();

  mutable os::Mutex mutex_;
  BucketCache cache_ BERTH_GUARDED_BY(mutex_);
  StreamUses streams_ BERTH_GUARDED_BY(mutex_);
  ExtraUses extra_ BERTH_GUARDED_BY(mutex_);      // by the address of the piece. BlockVerdict ones that wait there are apart
  PieceList kept_back_ BERTH_GUARDED_BY(mutex_);  // freed to go back at once, in a hold or under the work of several streams: apart
  HoldCount holds_ BERTH_GUARDED_BY(mutex_);

  // stats_.committed_bytes == sum of taken_bytes over all pieces + leaving_bytes_
  // stats_.committed_bytes + coming_bytes_ <= rules_.limit_bytes
  Stats stats_ BERTH_GUARDED_BY(mutex_);  // but cached_bytes, which is the rest
  std::uint64_t next_serial_ BERTH_GUARDED_BY(mutex_) = 1;
  HoldCount changes_ BERTH_GUARDED_BY(mutex_);                // calls of the device under way, here and not in a forking parent
  std::uint64_t changes_ended_ BERTH_GUARDED_BY(mutex_) = 0;  // so far
  std::size_t coming_bytes_ BERTH_GUARDED_BY(mutex_) = 0;     // asked of the device
  std::size_t leaving_bytes_ BERTH_GUARDED_BY(mutex_) = 0;    // forgotten, and not yet back with the device
  os::Condition change_ended_;
};

}  // namespace berth::internal::memory
