// SPDX-License-Identifier: Apache-2.0
#include "memory/space/space.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "berth/base/checked.h"
#include "memory/inherited.h"

namespace berth::internal::memory {

namespace {

constexpr Failure kNoTables{ErrorCode::out_of_memory, 0, "no heap for the pool's tables"};

}  // namespace

Status Space::open() noexcept {
  const os::NoFork no_fork(no_fork_during_calls(backend_), mutex_);
  opening_.take(mutex_);
  const Status done = is_open() ? Status() : open_alone();
  opening_.end();
  return done;
}

Status Space::open_alone() noexcept {
  const std::size_t limit = state_.accounts.limit();
  const Result<AddressRange> range =
      os::unlocked(mutex_, [&] { return reserve_addresses(backend_, state_.map.rules().page_bytes, limit); });
  if (!range) return range.failure();
  if (state_.map.open(*range)) return {};
  os::unlocked(mutex_, [&] { (void)backend_.release(range->base, range->bytes).ok(); });
  return kNoTables;
}

void Space::close() noexcept {
  if (!is_open()) return;
  make_touchable();
  os::unlocked(mutex_, [&] { (void)backend_.release(base(), size_bytes()).ok(); });
  state_.accounts.close();
  state_.map.close();
}

// A failure `busy`: none fits, or none as it is, and the effort does not include the device.
Result<PoolExtent*> Space::take_cached(Part part, std::size_t bytes, std::size_t alignment, std::uint32_t stream,
                                       Cutting& cutting) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(base());
  const std::size_t padded = bytes + (alignment > kGrain ? alignment - kGrain : 0);
  for (;;) {
    if (!state_.map.reserve_nodes(Extents::kNodesPerCut)) return kNoTables;
    PoolExtent* const found = state_.map.part(part).find_cached(padded, stream);
    if (found == nullptr) return Failure{ErrorCode::busy, 0, "no cached memory fits"};
    const std::size_t begin = round_up(address + found->begin, alignment) - address;
    const auto wanted = [&] { return plan_cut(state_.view(), *found, {begin, begin + bytes}); };
    const std::optional<PieceCut> cut = cutting.is_over() || !state_.accounts.cuts_matter() ? std::nullopt : wanted();
    if (!cut) return state_.make_live(found, begin, bytes);
    if (const Status done = cut_first(*cut, cutting); !done) return done.failure();
  }
}

Result<PoolExtent*> Space::take(Part part, std::size_t bytes, std::size_t alignment, std::uint32_t stream, Effort effort) noexcept {
  if (stream == 0) note_user(0);
  return find_or_fill(part, bytes, alignment, stream, effort);
}

Result<PoolExtent*> Space::find_or_fill(Part part, std::size_t bytes, std::size_t alignment, std::uint32_t stream, Effort effort) noexcept {
  if (bytes + (alignment > kGrain ? alignment - kGrain : 0) > size_bytes())
    return Failure{ErrorCode::out_of_memory, 0, "the request is longer than the pool's address range", Refusal::addresses};
  const bool device = effort != Effort::cached_well && effort != Effort::cached_only;
  Cutting cutting{.effort = effort};
  const Result<PoolExtent*> cached = take_cached(part, bytes, alignment, stream, cutting);
  const auto is_last = [&](const Failure& failure) { return failure.code != ErrorCode::busy || failure.cause == Refusal::pending_work; };
  if (cached || !device || is_last(cached.failure())) return cached;
  const os::NoFork no_fork(no_fork_during_calls(backend_), mutex_);
  end_echoes();
  for (;;) {
    if (!state_.map.reserve_nodes(Extents::kNodesPerCut)) return kNoTables;  // again: what came before may release the mutex
    const PageWindow window = find_window(view(effort), part, bytes, alignment, stream);
    if (window.first == nullptr) break;
    const std::optional<PieceCut> cut = cutting.is_over() ? std::nullopt : plan_cut(view(effort), window);
    if (!cut) return occupy(window, stream, effort);
    if (const Status done = cut_first(*cut, cutting); !done) return done.failure();
  }
  // Better in the other part than not at all.
  const Part other = part == Part::slabs ? Part::large : Part::slabs;
  cutting.end();
  if (const Result<PoolExtent*> there = take_cached(other, bytes, alignment, stream, cutting)) return there;
  const PageWindow window = find_window(view(effort), other, bytes, alignment, stream);
  if (window.first == nullptr) return Failure{ErrorCode::out_of_memory, 0, "no run of addresses is long enough", Refusal::addresses};
  return occupy(window, stream, effort);
}

// Requests may be of several streams from now on, or have none.
void Space::note_user(std::uint32_t stream) noexcept {
  if (!user_) user_ = stream;
  several_users_ = several_users_ || stream == 0 || stream != *user_;
  state_.map.set_sole_stream(!several_users_);
}

// Before the block is placed; the caller looks for a place again.
Status Space::cut_first(const PieceCut& cut, Cutting& cutting) noexcept {
  if (cutting.effort == Effort::cached_well) return Failure{ErrorCode::busy, 0, "no cached memory fits without a cut"};
  awaited_point_ = cut.point;
  if (cut.point != 0 && cutting.effort == Effort::usual && state_.accounts.is_tight())
    return Failure{ErrorCode::busy, 0, "the stream may still use what would be cut", Refusal::pending_work};
  if (cut.point != 0) {
    cutting.end();
  } else if (!cutting.no_fork) {
    cutting.no_fork.emplace(no_fork_during_calls(backend_), mutex_);  // may release the mutex
  } else {
    --cutting.left;
    if (!this->cut(cut)) cutting.end();
  }
  return {};
}

// Before a request is refused, memory is counted in the smallest units that the device has.
PageView Space::view(Effort effort) const noexcept {
  PageView view = state_.view();
  if (effort == Effort::all_pages && !view.rules.in_pieces()) view.rules.page_bytes = view.rules.unit_bytes;
  return view;
}

bool Space::grow(PoolExtent* extent, std::size_t bytes, std::uint32_t stream, Effort effort) noexcept {
  const os::NoFork no_fork(no_fork_during_calls(backend_), mutex_);
  const bool device = effort != Effort::cached_only;
  if (device) end_echoes();
  const PageWindow window = window_behind(*extent, bytes - extent->bytes, stream);
  if (window.first == nullptr || (window.missing > 0 && !device)) return false;
  if (!occupy(window, stream, effort)) return false;
  state_.map.join_live(extent);
  return true;
}

// Makes a live extent of free ones, and ensures that there is memory under all of it.
Result<PoolExtent*> Space::occupy(const PageWindow& window, std::uint32_t stream, Effort effort) noexcept {
  if (!state_.map.reserve_nodes(Extents::kNodesPerCut * (window.extents + 1))) return kNoTables;
  const PageView before = view(effort);
  const Transit transit = state_.map.enter(window, before.rules.page_bytes, effort == Effort::all_pages ? 0 : plan_ahead(before, window));
  PageFill filling(mutex_, lender_, state_, transit, {window.begin, window.begin + window.bytes}, stream, effort);
  while (filling.enter()) {
    RunResult result;
    {
      const os::Unlock released(mutex_);
      result = run_steps(backend_, base(), filling.steps(), filling.loans());
    }
    filling.account(result);
  }
  note_excess(before, window.bytes);
  Status filled = filling.status();
  if (filled && !state_.map.reserve_nodes(Extents::kNodesPerCut)) filled = kNoTables;
  if (!filled) {
    if (filled.failure().code == ErrorCode::out_of_memory && filled.failure().cause == Refusal::other) state_.accounts.note_device_full();
    state_.map.leave(transit);
    return filled.failure();
  }
  // Free for a moment, so that what lies outside the block coalesces with its neighbours. What was free for the
  // stream alone is inside; what was moved while the stream was using it may not be.
  PoolExtent* const whole = state_.map.free_cached(state_.map.coalesce(transit), stream, filling.point());
  return state_.make_live(whole, window.begin, window.bytes);
}

PoolExtent* Space::give(PoolExtent* extent, std::uint32_t stream, std::uint64_t point) noexcept {
  state_.accounts.take_back(extent->bytes);
  return state_.map.free_live(extent, stream, point);
}

// What a request had to commit beyond the bound, because as much free memory is pinned.
void Space::note_excess(const PageView& before, std::size_t block_bytes) noexcept {
  const PageFigures& now = state_.accounts.figures();
  const std::size_t bound = saturating_scale(std::max(now.peak_live, now.live + block_bytes), before.rules.excess_bound);
  if (now.committed <= std::max(bound, before.committed)) return;
  state_.accounts.note_excess(std::min(now.committed - std::max(bound, before.committed), state_.map.pinned_bytes()));
}

// False when the piece is still as it was, or what the device took back is gone.
bool Space::cut(const PieceCut& cut) noexcept {
  if (!state_.map.reserve_nodes(Extents::kNodesPerCut + 1)) return false;
  PoolExtent* const front = state_.map.withdraw(cut.piece, 0);
  PoolExtent* const back = state_.map.part_of(cut.at).split(front, cut.at - cut.piece.begin);
  const auto commit = [&](const PageSpan& span) { return backend_.commit(base() + span.begin, span.bytes()).ok(); };
  bool gone = false;
  std::array<bool, 2> made{};
  {
    const os::Unlock released(mutex_);
    gone = backend_.decommit(base() + cut.piece.begin, cut.piece.bytes()).ok();
    if (gone) made = {commit(cut.front()), commit(cut.back())};
  }
  if (gone) state_.accounts.move(cut.piece.bytes(), (made[0] ? cut.front().bytes() : 0) + (made[1] ? cut.back().bytes() : 0));
  state_.accounts.note_cut(cut.spared);
  for (const auto& [extent, there] : {std::pair{front, made[0]}, std::pair{back, made[1]}}) {
    if (gone && there) state_.map.note_memory(extent);
    if (gone && !there)
      state_.map.become_bare(extent);
    else
      state_.map.put_back(extent);
  }
  return made[0] && made[1];
}

Status Space::reserve(std::size_t bytes) noexcept {
  const auto rounded = try_align_up(bytes, kGrain);
  if (!rounded) return Failure{ErrorCode::out_of_memory, 0, "no address space is that large"};
  if (*rounded <= part(Part::large).clean_tree().widest()) return {};
  const Result<PoolExtent*> taken = find_or_fill(Part::large, *rounded, kGrain, 0, Effort::usual);
  if (!taken) return taken.failure();
  state_.accounts.was_ahead(*rounded);
  give(*taken, 0, 0);
  return {};
}

void Space::clean(std::uint32_t stream, std::uint64_t point) noexcept {
  state_.map.clean(stream, point);
  state_.echoes.clean(state_.map);
}

void Space::end_stream(std::uint32_t stream) noexcept {
  clean(stream, UINT64_MAX);
  state_.map.forget_stream(stream);
}

// Unmaps the old addresses of memory that has moved, where no pending work can touch it. Releases the mutex.
void Space::end_echoes() noexcept {
  while (PoolExtent* const echo = state_.echoes.take_over()) {
    const Status ended = os::unlocked(mutex_, [&] { return backend_.end_move(base() + echo->begin, echo->bytes); });
    if (ended)
      state_.map.become_bare(echo);
    else
      echo->state = ExtentState::echo;  // these addresses are lost, and nothing else
  }
}

}  // namespace berth::internal::memory
