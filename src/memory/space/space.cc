// SPDX-License-Identifier: Apache-2.0
#include "memory/space/space.h"

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

Result<PoolExtent*> Space::take(Part part, std::size_t bytes, std::size_t alignment, std::uint32_t stream, Effort effort) noexcept {
  const std::size_t padded = bytes + (alignment > kGrain ? alignment - kGrain : 0);
  if (padded > size_bytes())
    return Failure{ErrorCode::out_of_memory, 0, "the request is longer than the pool's address range", Refusal::addresses};
  if (!state_.map.reserve_nodes(Extents::kNodesPerCut)) return kNoTables;
  const auto take_cached = [&](PoolExtent* found) {
    const auto address = reinterpret_cast<std::uintptr_t>(base());
    return state_.make_live(found, round_up(address + found->begin, alignment) - address, bytes);
  };
  if (PoolExtent* const found = state_.map.part(part).first_cached(padded, stream)) return take_cached(found);
  if (effort == Effort::cached_only) return Failure{ErrorCode::busy, 0, "no cached memory fits"};
  const os::NoFork no_fork(no_fork_during_calls(backend_), mutex_);
  end_echoes();
  if (!state_.map.reserve_nodes(Extents::kNodesPerCut)) return kNoTables;  // again: both may release the mutex
  if (const PageWindow window = find_window(view(effort), part, bytes, alignment, stream); window.first != nullptr)
    return occupy(window, stream, effort);
  // Better in the other part than not at all.
  const Part other = part == Part::slabs ? Part::large : Part::slabs;
  if (PoolExtent* const found = state_.map.part(other).first_cached(padded, stream)) return take_cached(found);
  const PageWindow window = find_window(view(effort), other, bytes, alignment, stream);
  if (window.first == nullptr) return Failure{ErrorCode::out_of_memory, 0, "no run of addresses is long enough", Refusal::addresses};
  return occupy(window, stream, effort);
}

// Before a request is refused, memory is counted in the smallest units that the device has.
PageView Space::view(Effort effort) const noexcept {
  PageView view = state_.view();
  if (effort == Effort::all_pages && !view.rules.in_pieces()) view.rules.page_bytes = view.rules.unit_bytes;
  return view;
}

bool Space::grow(PoolExtent* extent, std::size_t bytes, std::uint32_t stream, Effort effort) noexcept {
  const os::NoFork no_fork(no_fork_during_calls(backend_), mutex_);
  if (effort != Effort::cached_only) end_echoes();
  const PageWindow window = window_behind(*extent, bytes - extent->bytes, stream);
  if (window.first == nullptr || (window.missing > 0 && effort == Effort::cached_only)) return false;
  if (!occupy(window, stream, effort)) return false;
  state_.map.part_of(extent->begin).join_next(extent);
  return true;
}

// Makes a live extent of free ones, and ensures that there is memory under all of it.
Result<PoolExtent*> Space::occupy(const PageWindow& window, std::uint32_t stream, Effort effort) noexcept {
  if (!state_.map.reserve_nodes(Extents::kNodesPerCut * (window.extents + 1))) return kNoTables;
  const PageView before = view(effort);
  const Transit transit = state_.map.enter(window, before.rules.page_bytes, effort == Effort::usual ? plan_ahead(before, window) : 0);
  PageFill filling(mutex_, lender_, state_, transit, window.bytes, stream, effort);
  while (filling.enter()) {
    RunResult result;
    {
      const os::Unlock released(mutex_);
      result = run_steps(backend_, base(), filling.steps(), filling.loans());
    }
    filling.account(result);
  }
  Status filled = filling.status();
  if (filled && !state_.map.reserve_nodes(Extents::kNodesPerCut)) filled = kNoTables;
  if (!filled) {
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
  return state_.map.part_of(extent->begin).free_cached(extent, stream, point);
}

Status Space::reserve(std::size_t bytes) noexcept {
  const auto rounded = try_align_up(bytes, kGrain);
  if (!rounded) return Failure{ErrorCode::out_of_memory, 0, "no address space is that large"};
  if (*rounded <= part(Part::large).clean_tree().widest()) return {};
  const Result<PoolExtent*> taken = take(Part::large, *rounded, kGrain, 0, Effort::usual);
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
