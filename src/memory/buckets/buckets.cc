// SPDX-License-Identifier: Apache-2.0
#include "memory/buckets/buckets.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/poison.h"
#include "berth/base/checked.h"
#include "berth/device/backend.h"
#include "memory/inherited.h"
#include "memory/judge.h"

namespace berth::internal::memory {

namespace {

constexpr Failure kNoHeap{ErrorCode::out_of_memory, 0, "no heap for the block's entry"};
constexpr Failure kTooLargeRounded{ErrorCode::out_of_memory, 0, "rounded up, no address space is that large"};
constexpr Failure kHeld{ErrorCode::busy, 0, "the device is held, and no cached block has that size"};
constexpr Failure kInherited{ErrorCode::fork_unsafe, 0, "the allocator was made before fork, for a device that does not survive it"};

}  // namespace

std::size_t grain_of(const Backend& backend) noexcept {
  return backend.properties().abilities.host_access ? 1 : backend.properties().unit_bytes;
}

Buckets::Buckets(Backend& backend, BucketRules rules)
    : Allocator(backend),
      rules_(std::move(rules)),
      grain_(grain_of(backend)),
      poisons_(kAddressSanitizer && backend.properties().abilities.host_access),
      budget_(process_budget(backend)) {}

// Buffers keep their allocator alive, so blocks that are live here were leaked by a user of bare blocks. Their
// memory is not freed: it may still be in use. This may run inside the work of a stream that cached pieces wait
// for, so it must not wait: they are freed in the order of that stream.
Buckets::~Buckets() {
  if (is_inherited() || !backend().is_alive()) return;
  {
    const os::Lock lock(mutex_);
    while (Piece* const piece = kept_back_.oldest()) {  // only if a hold stayed in the parent of a fork
      kept_back_.remove(piece);
      cache_.put(piece);
    }
    settle_all(false);
    release_cached_to(0);
  }
  free_in_turn();
}

// Frees pieces with pending work after that work. If a stream rejects that, leaking the memory is safer than
// freeing it under running work. Backends are never destroyed.
void Buckets::free_in_turn() noexcept {
  struct Rest {
    void* data;
    std::size_t bytes;
    std::size_t alignment;
  };
  try {
    std::vector<Rest> rest;
    cache_.for_each([&](const Piece& piece) {
      if (piece.state == Piece::State::live) return;
      if (poisons_) unpoison(piece.data, piece.bucket->taken_bytes);
      rest.push_back({piece.data, piece.bucket->taken_bytes, piece.bucket->key.alignment});
    });
    if (rest.empty()) return;
    (void)streams_.enqueue_behind_pending([&device = backend(), &budget = budget_, rest] {
      for (const Rest& piece : rest) {
        device.free(piece.data, piece.bytes, piece.alignment);
        budget.give_up(piece.bytes);
      }
    });
  } catch (const std::bad_alloc&) {
  }
}

bool Buckets::is_inherited() const noexcept { return memory::is_inherited(origin_, backend()); }

// ---- requests

Status Buckets::obtain(const Request& request, Block& block) noexcept {
  const os::Lock lock(mutex_);
  const Result<Piece*> piece = acquire(request);
  if (!piece) [[unlikely]] {
    usage_.count_refusal();
    return piece.failure();
  }
  hand_out(**piece, request);
  block.data = (*piece)->data;
  block.serial = (*piece)->serial;
  return {};
}

Result<Piece*> Buckets::acquire(const Request& request) noexcept {
  if (is_inherited()) return kInherited;
  const std::optional<std::size_t> bytes = rules_.rounding.round(request.bytes);
  const std::optional<std::size_t> taken = bytes ? try_align_up(*bytes, grain_) : std::nullopt;
  if (!taken || *taken > kMaxBytes) return kTooLargeRounded;
  if (!usage_.reserve(request.tag)) return kNoHeap;
  const std::uint32_t stream = streams_.find_or_add(request.stream);
  if (request.stream && stream == 0) return kNoHeap;
  const BucketKey key{*bytes, std::max(request.alignment, backend().properties().alignment)};
  Bucket* const bucket = cache_.find_or_add(key, *taken, stream);
  if (bucket == nullptr) return kNoHeap;
  ++bucket->requests;  // it stays while the lock is released
  const Result<Piece*> piece = find_or_make(*bucket, stream);
  --bucket->requests;
  cache_.drop_if_unused(bucket);
  if (piece) {
    (*piece)->stream = stream;
    (*piece)->point = 0;
  }
  return piece;
}

Result<Piece*> Buckets::find_or_make(Bucket& bucket, std::uint32_t stream) noexcept {
  if (Piece* const piece = cache_.take(bucket, stream, streams_)) return piece;
  if (Piece* const piece = take_known(bucket, stream)) return piece;
  if (!holds_.any() && (bucket.cached > 0 || extra_.any_freed())) {
    if (extra_.any_freed()) settle_all(false);
    for (std::uint32_t other = 1; other < bucket.lists.size(); ++other) {
      if (bucket.lists[other].oldest() != nullptr) settle(other, false);
    }
    if (Piece* const piece = cache_.take(bucket, stream, streams_)) return piece;
  }
  if (holds_.any()) return kHeld;
  const Result<Piece*> made = make(bucket);
  // A request that can never fit the limit is not worth the cache.
  if (made || made.failure().code != ErrorCode::out_of_memory || bucket.taken_bytes > rules_.limit_bytes) return made;
  return make_after_releasing(bucket, stream, made.failure());
}

// Waits for streams only if what could be released without waiting was not enough. If several threads fill the
// device together, another may take what this one released: then it tries again.
Result<Piece*> Buckets::make_after_releasing(Bucket& bucket, std::uint32_t stream, Failure failure) noexcept {
  constexpr int kRounds = 8;
  bool changed = true;
  for (int round = 0; round < kRounds && (round < 2 || changed); ++round) {
    settle_all(round > 0);
    if (Piece* const piece = cache_.take(bucket, stream, streams_)) return piece;
    part_with_kept_back();
    changed = release_cached_to(0);
    changed = await_change() || changed;
    if (holds_.any()) return kHeld;
    if (!changed) continue;
    const Result<Piece*> made = make(bucket);
    if (made || made.failure().code != ErrorCode::out_of_memory) return made;
    failure = made.failure();
  }
  return failure;
}

Result<Piece*> Buckets::make(Bucket& bucket) noexcept {
  const os::NoFork no_fork(no_fork_during_calls(backend()), os::NoFork::Wait::no);
  const std::size_t bytes = bucket.taken_bytes;
  const std::size_t coming = changes_.any() ? coming_bytes_ : 0;
  if (!fits(usage_.committed_bytes() + coming, bytes, rules_.limit_bytes)) return kOverLimit;
  if (budget_.claim(bytes) != nullptr) return kOverProcessLimit;
  begin_change();
  coming_bytes_ += bytes;
  const Result<void*> data = os::unlocked(mutex_, [&] { return backend().allocate(bytes, bucket.key.alignment); });
  Piece* const piece = data ? cache_.add(*data, bucket) : nullptr;
  if (data && piece == nullptr) {
    os::unlocked(mutex_, [&] { backend().free(*data, bytes, bucket.key.alignment); });
  }
  coming_bytes_ -= bytes;
  if (piece == nullptr) budget_.give_up(bytes);
  end_change();
  if (piece == nullptr) return data ? kNoHeap : data.failure();
  usage_.count_commit(bytes);
  return piece;
}

void Buckets::hand_out(Piece& piece, const Request& request) noexcept {
  piece.state = Piece::State::live;
  piece.alignment_log2 = static_cast<std::uint8_t>(std::countr_zero(request.alignment));
  piece.tag = request.tag;
  piece.requested = request.bytes;
  piece.serial = next_serial_++;
  piece.stream_id = request.stream.id();
  piece.allocator_id = request.allocator_id;
  if (poisons_) {
    unpoison(piece.data, piece.bucket->taken_bytes);
    if (piece.stream == 0) poison(static_cast<std::byte*>(piece.data) + request.bytes, piece.bucket->taken_bytes - request.bytes);
  }
  usage_.count_allocation(request.tag, request.bytes);
}

void Buckets::reserve(std::size_t bytes) {
  if (bytes == 0) return;
  const Request request{.bytes = bytes, .alignment = backend().properties().alignment};
  Status done;
  {
    const os::Lock lock(mutex_);
    const Result<Piece*> piece = acquire(request);
    if (piece)
      cache_.put(*piece);
    else
      done = piece.failure();
  }
  if (!done) throw_refused(request, done.failure());
}

// ---- frees

BlockVerdict Buckets::give_back(const Block& block, When when, Block* known) noexcept {
  const os::Lock lock(mutex_);
  Piece* const piece = cache_.find(block.data);
  const BlockVerdict verdict = judge(piece, block, next_serial_);
  if (verdict != BlockVerdict::ok) return verdict;
  complete(known, block, piece->known());
  usage_.count_free(piece->tag, piece->requested);
  piece->state = Piece::State::apart;
  piece->point = streams_.point_of_free(piece->stream);
  // A forked child does not call the device: what it frees stays cached.
  if (when == When::now && !is_inherited()) {
    part_with(piece);
  } else if (!waits_for_others(*piece)) {
    // Pending work in a stream may still touch a freed piece.
    if (poisons_ && piece->stream == 0) poison(piece->data, piece->bucket->taken_bytes);
    cache_.put(piece);
  }
  return BlockVerdict::ok;
}

Result<bool> Buckets::locate(Block& block) noexcept {
  const os::Lock lock(mutex_);
  return describe(cache_.find(block.data), block);
}

// Grows only within the bucket, where the memory is already allocated.
bool Buckets::grow(Block& block, std::size_t bytes) noexcept {
  const os::Lock lock(mutex_);
  Piece* const piece = cache_.find(block.data);
  if (judge(piece, block, next_serial_) != BlockVerdict::ok || rules_.rounding.round(bytes) != piece->bucket->key.bytes) return false;
  usage_.count_growth(piece->tag, piece->requested, bytes);
  if (poisons_) unpoison(piece->data, bytes);
  piece->requested = block.bytes = bytes;
  piece->serial = block.serial = next_serial_++;
  return true;
}

Result<BlockVerdict> Buckets::note_use(const Block& block, StreamRef stream) noexcept {
  const os::Lock lock(mutex_);
  const Piece* const piece = cache_.find(block.data);
  const BlockVerdict verdict = judge(piece, block, next_serial_);
  if (verdict != BlockVerdict::ok || !stream) return verdict;
  const std::uint32_t number = streams_.find_or_add(stream);
  if (number == 0) return kNoHeap;
  if (number == piece->stream) return BlockVerdict::ok;
  return extra_.add(key_of(*piece), stream.id()) ? Result<BlockVerdict>(BlockVerdict::ok) : kNoHeap;
}

void Buckets::part_with(Piece* piece) noexcept {
  if (holds_.any()) {
    kept_back_.push(piece);
    return;
  }
  if (waits_for_others(*piece)) {
    piece->leaves = true;
    settle_all(true);  // then it is in kept_back_, unless a wait was not possible
    part_with_kept_back();
    return;
  }
  if (!BucketCache::is_over(*piece, streams_)) settle(piece->stream, true);
  if (BucketCache::is_over(*piece, streams_))
    return_to_device(piece);
  else
    cache_.put(piece);  // its stream cannot be queried, so its pending work is unknown
}

void Buckets::part_with_kept_back() noexcept {
  while (Piece* const piece = holds_.any() ? nullptr : kept_back_.oldest()) {
    kept_back_.remove(piece);
    part_with(piece);
  }
}

bool Buckets::release_cached_to(std::size_t keep_bytes) noexcept {
  bool any = false;
  BucketKey from = BucketCache::kLargest;
  begin_change();  // one change for all: a thread that waits for it finds everything
  while (cache_.cached_bytes() > keep_bytes && !holds_.any()) {
    Piece* const piece = cache_.take_largest(from, streams_);
    if (piece == nullptr) break;
    return_to_device(piece);
    any = true;
  }
  end_change();
  return any;
}

// The piece is removed from the table before the device frees it: from then on another thread may get the same
// address.
void Buckets::return_to_device(Piece* piece) noexcept {
  const os::NoFork no_fork(no_fork_during_calls(backend()), os::NoFork::Wait::no);
  const std::size_t bytes = piece->bucket->taken_bytes;
  const std::size_t alignment = piece->bucket->key.alignment;
  void* const data = piece->data;
  if (poisons_) unpoison(data, bytes);
  begin_change();
  leaving_bytes_ += bytes;
  cache_.remove(piece);
  // A lost device is not called.
  os::unlocked(mutex_, [&] {
    if (backend().is_alive()) backend().free(data, bytes, alignment);
  });
  budget_.give_up(bytes);
  leaving_bytes_ -= bytes;
  usage_.count_decommit(bytes);
  end_change();
}

void Buckets::trim(std::size_t keep_bytes) {
  const os::Lock lock(mutex_);
  if (holds_.any() || is_inherited()) return;
  part_with_kept_back();  // in a forked child: those of the parent's hold
  settle_all(false);
  release_cached_to(keep_bytes);
}

void Buckets::begin_hold() noexcept {
  const os::Lock lock(mutex_);
  holds_.begin();
}

void Buckets::end_hold() noexcept {
  const os::Lock lock(mutex_);
  if (holds_.end()) part_with_kept_back();
}

// ---- streams and other threads

void Buckets::settle(std::uint32_t number, bool wait) noexcept {
  const std::uint64_t last = streams_[number].point;  // other threads may go on freeing
  for (bool more = true; more && streams_[number].is_pending() && streams_[number].done < last;) {
    StreamUses::Question question = streams_.question(number);
    os::unlocked(mutex_, [&] { StreamUses::ask(question, wait); });
    (void)streams_.enter(number, question);
    more = question.done;
    os::unlocked(mutex_, [&] { question = {}; });
  }
}

void Buckets::settle_all(bool wait) noexcept {
  do {
    for (std::uint32_t number = 1; number < streams_.count() && !holds_.any(); ++number) settle(number, wait);
  } while (release_extra());  // these then wait for their own streams
}

Piece* Buckets::take_known(Bucket& bucket, std::uint32_t stream) noexcept {
  if (!streams_.any_pending()) return nullptr;
  for (std::uint32_t number = 1; number < streams_.count(); ++number) (void)streams_.look(number);
  (void)release_extra();
  const StreamState* const state = streams_[stream].stream.get();  // the request keeps it alive
  if (state == nullptr || bucket.cached == 0) return cache_.take(bucket, stream, streams_);
  const std::shared_ptr<const device::StreamClock> clock = os::unlocked(mutex_, [&] { return state->clock(); });
  return cache_.take(bucket, stream, streams_, clock.get());
}

bool Buckets::release_extra() noexcept {
  bool any = false;
  ExtraUses::Key at = 0;
  const auto is_over = [&](ExtraUses::Key, const ExtraUses::Use& use)
                           BERTH_NO_THREAD_ANALYSIS { return ExtraUses::is_over(use, streams_); };
  while (extra_.take_over(at, is_over)) {
    Piece* const piece = cache_.find(reinterpret_cast<const void*>(at));
    piece->point = streams_.point_of_free(piece->stream);  // lists are ordered by point: it comes last
    if (std::exchange(piece->leaves, false))
      kept_back_.push(piece);
    else
      cache_.put(piece);
    any = true;
  }
  return any;
}

void Buckets::begin_change() noexcept {
  if (!changes_.any()) coming_bytes_ = 0;  // a forked child: pending allocations were the parent's
  changes_.begin();
}

void Buckets::end_change() noexcept {
  (void)changes_.end();
  ++changes_ended_;
  change_ended_.notify_all();
}

bool Buckets::await_change() noexcept {
  if (!changes_.any()) return false;
  const std::uint64_t seen = changes_ended_;
  while (changes_.any() && changes_ended_ == seen) change_ended_.wait(mutex_);
  return true;
}

}  // namespace berth::internal::memory
