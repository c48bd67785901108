// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "berth/record/tag.h"
#include "memory/judge.h"
#include "memory/stream_uses.h"

// The table of a bucket strategy: every piece it has from the device, by address, and free lists by bucket and
// stream. Freeing, looking up and removing never allocate. It calls no device and no stream. Not thread-safe:
// its owner locks.
namespace berth::internal::memory {

struct Bucket;

// Memory that is allocated from the device, and freed to it, in one call.
struct Piece {
  enum class State : std::uint8_t {
    apart,   // in transition between the others
    live,    // handed out
    cached,  // in one of its bucket's lists
  };

  void* data = nullptr;
  Bucket* bucket = nullptr;
  Piece* older = nullptr;  // in its list
  Piece* newer = nullptr;
  std::uint64_t point = 0;   // of its last free on its stream
  std::uint32_t stream = 0;  // number of the stream it is used on, or was freed on
  State state = State::apart;
  bool leaves = false;  // freed with deallocate_now, but several streams may have work on it

  // Of its current block, or its last.
  std::uint8_t alignment_log2 = 0;
  Tag tag;
  std::size_t requested = 0;
  std::uint64_t serial = 0;
  std::uint64_t stream_id = 0;
  std::uint64_t allocator_id = 0;  // the allocator that the block must be freed through

  KnownBlock known() const noexcept {
    return {.bytes = requested,
            .alignment = std::size_t{1} << alignment_log2,
            .serial = serial,
            .stream_id = stream_id,
            .allocator_id = allocator_id,
            .tag = tag,
            .live = state == State::live};
  }
};

// An intrusive list of pieces, in the order of insertion.
class PieceList {
 public:
  Piece* oldest() const noexcept { return oldest_; }
  Piece* newest() const noexcept { return newest_; }
  void push(Piece* piece) noexcept;
  void remove(Piece* piece) noexcept;

 private:
  Piece* oldest_ = nullptr;
  Piece* newest_ = nullptr;
};

struct BucketKey {
  std::size_t bytes = 0;  // after rounding
  std::size_t alignment = 0;
  auto operator<=>(const BucketKey&) const = default;
};

struct Bucket {
  BucketKey key;
  std::size_t taken_bytes = 0;      // from the device, by each piece
  std::size_t pieces = 0;           // in all states
  std::size_t requests = 0;         // in progress: the bucket must stay
  std::size_t cached = 0;           // pieces in the lists
  std::vector<PieceList> lists{1};  // by the stream they were freed on; 0: no stream
};

class BucketCache {
 public:
  using PieceNode = std::unordered_map<const void*, Piece>::node_type;

  // Returns the bucket, with a list for the stream; nullptr when there is no heap for that.
  Bucket* find_or_add(BucketKey key, std::size_t taken_bytes, std::uint32_t stream) noexcept;
  void drop_if_unused(Bucket* bucket) noexcept;

  // Takes a piece of the bucket that can be used on the stream now, or returns nullptr: one freed there, or one
  // whose pending work is known to be done or, by the stream's clock (null: nothing is known), to be ordered
  // before the stream.
  Piece* take(Bucket& bucket, std::uint32_t stream, const StreamUses& streams, const device::StreamClock* clock = nullptr) noexcept;
  // REQUIRES: the piece is in no list.
  void put(Piece* piece) noexcept;

  // Adds a piece, in state apart; returns nullptr, with nothing changed, when there is no heap. REQUIRES: there
  // is none at the address.
  Piece* add(void* data, Bucket& bucket) noexcept;
  Piece* find(const void* data) noexcept;
  // Removes a piece from the table. REQUIRES: it is apart.
  PieceNode remove(Piece* piece) noexcept;

  // Takes the largest cached piece, of buckets up to `from`, whose pending work is known to be done, and sets
  // it apart; nullptr when there is none. `from` becomes its bucket, so that a caller who continues from there
  // visits each bucket once.
  Piece* take_largest(BucketKey& from, const StreamUses& streams) noexcept;
  static constexpr BucketKey kLargest{SIZE_MAX, SIZE_MAX};

  std::size_t cached_bytes() const noexcept { return cached_bytes_; }
  std::size_t largest_cached() const noexcept;

  static bool is_over(const Piece& piece, const StreamUses& streams) noexcept { return piece.point <= streams[piece.stream].done; }

  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& [data, piece] : pieces_) visit(piece);
  }

  // What is wrong with the lists and the counts, or an empty string.
  std::string audit() const;

 private:
  void detach(Piece* piece) noexcept;
  std::string audit_bucket(const Bucket& bucket) const;

  std::unordered_map<const void*, Piece> pieces_;  // a cached one is only in bucket->lists[stream]
  std::map<BucketKey, Bucket> buckets_;            // pieces + requests > 0 for each
  std::size_t cached_bytes_ = 0;                   // == sum of taken_bytes over cached pieces
};

}  // namespace berth::internal::memory
