// SPDX-License-Identifier: Apache-2.0
#include "memory/buckets/bucket_cache.h"

#include <new>

#include "device/stream_clock.h"

namespace berth::internal::memory {

void PieceList::push(Piece* piece) noexcept {
  piece->older = newest_;
  piece->newer = nullptr;
  (newest_ == nullptr ? oldest_ : newest_->newer) = piece;
  newest_ = piece;
}

void PieceList::remove(Piece* piece) noexcept {
  (piece->older == nullptr ? oldest_ : piece->older->newer) = piece->newer;
  (piece->newer == nullptr ? newest_ : piece->newer->older) = piece->older;
  piece->older = piece->newer = nullptr;
}

Bucket* BucketCache::find_or_add(BucketKey key, std::size_t taken_bytes, std::uint32_t stream) noexcept {
  auto found = buckets_.find(key);
  try {
    if (found == buckets_.end()) found = buckets_.emplace(key, Bucket{.key = key, .taken_bytes = taken_bytes}).first;
    if (stream >= found->second.lists.size()) found->second.lists.resize(stream + std::size_t{1});
    return &found->second;
  } catch (const std::bad_alloc&) {
    if (found != buckets_.end()) drop_if_unused(&found->second);
    return nullptr;
  }
}

void BucketCache::drop_if_unused(Bucket* bucket) noexcept {
  if (bucket->pieces + bucket->requests == 0) buckets_.erase(buckets_.find(bucket->key));
}

Piece* BucketCache::take(Bucket& bucket, std::uint32_t stream, const StreamUses& streams, const device::StreamClock* clock) noexcept {
  if (bucket.cached == 0) return nullptr;
  Piece* piece = bucket.lists[stream].newest();  // the newest is most likely in the processor's cache
  if (piece == nullptr) piece = bucket.lists[0].newest();
  for (std::size_t other = 1; piece == nullptr && other < bucket.lists.size(); ++other) {
    Piece* const oldest = bucket.lists[other].oldest();
    if (oldest == nullptr) continue;
    const bool ordered = clock != nullptr && clock->point_of(streams[oldest->stream].id) >= oldest->point;
    if (ordered || is_over(*oldest, streams)) piece = oldest;
  }
  if (piece != nullptr) detach(piece);
  return piece;
}

void BucketCache::detach(Piece* piece) noexcept {
  piece->bucket->lists[piece->stream].remove(piece);
  --piece->bucket->cached;
  cached_bytes_ -= piece->bucket->taken_bytes;
  piece->state = Piece::State::apart;
}

void BucketCache::put(Piece* piece) noexcept {
  piece->bucket->lists[piece->stream].push(piece);
  ++piece->bucket->cached;
  cached_bytes_ += piece->bucket->taken_bytes;
  piece->state = Piece::State::cached;
}

Piece* BucketCache::add(void* data, Bucket& bucket) noexcept {
  try {
    Piece& piece = pieces_.try_emplace(data).first->second;
    piece.data = data;
    piece.bucket = &bucket;
    ++bucket.pieces;
    return &piece;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

Piece* BucketCache::find(const void* data) noexcept {
  const auto found = pieces_.find(data);
  return found == pieces_.end() ? nullptr : &found->second;
}

BucketCache::PieceNode BucketCache::remove(Piece* piece) noexcept {
  Bucket* const bucket = piece->bucket;
  PieceNode node = pieces_.extract(piece->data);
  --bucket->pieces;
  drop_if_unused(bucket);
  return node;
}

Piece* BucketCache::take_largest(BucketKey& from, const StreamUses& streams) noexcept {
  for (auto next = buckets_.upper_bound(from); next != buckets_.begin();) {
    Bucket& bucket = (--next)->second;
    if (bucket.cached == 0) continue;
    for (const PieceList& list : bucket.lists) {
      Piece* const oldest = list.oldest();
      if (oldest == nullptr || !is_over(*oldest, streams)) continue;
      from = bucket.key;
      detach(oldest);
      return oldest;
    }
  }
  return nullptr;
}

std::size_t BucketCache::largest_cached() const noexcept {
  for (auto next = buckets_.rbegin(); next != buckets_.rend(); ++next) {
    if (next->second.cached > 0) return next->second.taken_bytes;
  }
  return 0;
}

std::string BucketCache::audit() const {
  std::size_t pieces = 0;
  std::size_t cached = 0;
  for (const auto& [key, bucket] : buckets_) {
    if (key != bucket.key || bucket.pieces + bucket.requests == 0) return "a bucket is under the wrong key, or should be gone";
    if (std::string wrong = audit_bucket(bucket); !wrong.empty()) return wrong;
    pieces += bucket.pieces;
    cached += bucket.cached * bucket.taken_bytes;
  }
  if (pieces != pieces_.size()) return "the buckets' pieces are not all the pieces";
  if (cached != cached_bytes_) return "cached bytes are not the sum of the cached pieces";
  std::size_t in_lists = 0;
  std::size_t listed = 0;
  for (const auto& [data, piece] : pieces_) in_lists += piece.state == Piece::State::cached ? 1 : 0;
  for (const auto& [key, bucket] : buckets_) listed += bucket.cached;
  return in_lists == listed ? "" : "a cached piece is in no list";
}

std::string BucketCache::audit_bucket(const Bucket& bucket) const {
  std::size_t count = 0;
  for (std::size_t stream = 0; stream < bucket.lists.size(); ++stream) {
    const Piece* before = nullptr;
    for (const Piece* piece = bucket.lists[stream].oldest(); piece != nullptr; before = piece, piece = piece->newer, ++count) {
      const auto known = pieces_.find(piece->data);
      if (known == pieces_.end() || &known->second != piece) return "a list holds what is no piece";
      if (piece->state != Piece::State::cached || piece->bucket != &bucket || piece->stream != stream || piece->older != before)
        return "a list holds a piece that does not belong there";
    }
    if (bucket.lists[stream].newest() != before) return "a list ends before its newest piece";
  }
  return count == bucket.cached ? "" : "a bucket's count is not what its lists hold";
}

}  // namespace berth::internal::memory
