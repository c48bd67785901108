// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "berth/base/checked.h"
#include "berth/memory/snapshot.h"
#include "memory/buckets/buckets.h"
#include "memory/device_refusal.h"
#include "memory/holders.h"

// Statistics, reports, snapshot and audit of the bucket strategies.
namespace berth::internal::memory {

Stats Buckets::stats() const {
  const os::Lock lock(mutex_);
  return usage_.stats();
}

std::vector<Holder> Buckets::holders() const {
  std::vector<Holder> held;
  {
    const os::Lock lock(mutex_);
    held = usage_.holders();
  }
  return most_first(std::move(held));
}

void Buckets::list_blocks(Snapshot& snapshot) const {
  snapshot.has_blocks = true;
  if (rules_.limit_bytes != SIZE_MAX) snapshot.limit_bytes = rules_.limit_bytes;
  const os::Lock lock(mutex_);
  cache_.for_each([&](const Piece& piece) BERTH_NO_THREAD_ANALYSIS {
    const auto address = reinterpret_cast<std::uintptr_t>(piece.data);
    const std::size_t bytes = piece.bucket->taken_bytes;
    if (piece.state == Piece::State::cached) {
      snapshot.free.push_back({address, bytes, streams_[piece.stream].id, piece.stream == 0 ? FreeKind::anyone : FreeKind::stream});
      return;
    }
    snapshot.blocks.push_back({.offset = address,
                               .bytes = bytes,
                               .requested = std::min(piece.requested, bytes),
                               .stream_id = piece.stream_id,
                               .age_ns = 0,
                               .tag = piece.tag.id(),
                               .site = 0,
                               .state = piece.state == Piece::State::live ? BlockState::live : BlockState::waiting});
  });
}

void Buckets::explain(const Failure& failure, OutOfMemoryReport& report) const {
  const os::Lock lock(mutex_);
  report.in_use_bytes = usage_.in_use_bytes();
  report.cached_bytes = usage_.cached_bytes();
  report.largest_free_run_bytes = cache_.largest_cached();
  const bool limited = failure.cause == Refusal::strategy_limit;
  name_device(failure, report);
  if (limited) report.refused_by = text::join("the limit of ", text::bytes(rules_.limit_bytes), " of ", name());
  if (limited) report.limit_bytes = rules_.limit_bytes;
  const std::optional<std::size_t> bytes = rules_.rounding.round(report.requested_bytes);
  const std::optional<std::size_t> needed = bytes ? try_align_up(*bytes, grain_) : std::nullopt;
  const std::size_t below_limit = rules_.limit_bytes - usage_.committed_bytes();
  const std::size_t within_reach = std::min(below_limit, report.device_free_bytes);
  if (needed && *needed > within_reach) report.would_be_enough_bytes = *needed - within_reach;
  if (needed && *needed <= rules_.limit_bytes) {
    report.tried.emplace_back(text::join("looked for a free block of ", text::bytes(*bytes)));
    report.tried.emplace_back("released all cached memory, and asked again");
  }
  report.tried.emplace_back(text::join("refused: ", std::string_view(failure.why)));
}

std::string Buckets::audit() const {
  const auto wrong = [this](std::string_view what) { return text::join(std::string_view(rules_.name), ": ", what); };
  const os::Lock lock(mutex_);
  if (const std::string found = cache_.audit(); !found.empty()) return wrong(found);
  std::size_t in_use = 0;
  std::size_t taken = leaving_bytes_;
  std::uint64_t live = 0;
  bool in_place = true;
  cache_.for_each([&](const Piece& piece) {
    taken += piece.bucket->taken_bytes;
    if (piece.state != Piece::State::live) return;
    in_use += piece.requested;
    ++live;
    in_place = in_place && rules_.rounding.round(piece.requested) == piece.bucket->key.bytes;
  });
  if (!in_place) return wrong("a live block is in another bucket than its size");
  if (in_use != usage_.in_use_bytes() || live != usage_.live_blocks()) return wrong("what is in use is not the sum of the live blocks");
  if (taken != usage_.committed_bytes()) return wrong("committed bytes are not the sum of the pieces");
  if (usage_.committed_bytes() > rules_.limit_bytes) return wrong("more is committed than the limit allows");
  return usage_.audit(rules_.name);
}

}  // namespace berth::internal::memory
