// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/escalation.h"

#include <algorithm>

namespace berth::internal::memory {

using Effort = Space::Effort;
using Wait = StreamBook::Wait;

bool Escalation::escalate(Status& done) noexcept {
  Supply& supply = supply_;
  switch (tried_) {
    case Tried::nothing:
      if (supply.book_.any_pending()) return try_next(Tried::cached, Effort::cached_well);
      return try_device(done);
    case Tried::cached:
      if (supply.book_.take_known(stream_)) return try_next(Tried::known, Effort::cached_well);
      [[fallthrough]];
    case Tried::known:
      if (!supply.is_held()) supply.book_.settle(Wait::no);
      return try_device(done);
    case Tried::held:  // what threads keep is cached memory too, and the device is not asked for it
      supply.empty_caches();
      return try_next(Tried::everything, Effort::cached_only);
    case Tried::captured: done = refused_; return false;
    case Tried::usual:
      if (done.failure().cause == Refusal::pending_work) return await_cut();
      [[fallthrough]];
    case Tried::uncut:
      if (done.failure().code != ErrorCode::out_of_memory) return false;
      gather();
      return try_next(Tried::all_pages, Effort::all_pages);
    case Tried::all_pages:
      // As long as the work of a stream may free some: by one free after another, as later work may take long.
      if (waits_left_ > 0 && may_go_on(done) && supply.book_.wait_for_oldest()) {
        --waits_left_;
        ++last_search().waits;
        return try_next(Tried::all_pages, Effort::all_pages);
      }
      if (!may_go_on(done) || done.failure().cause == Refusal::private_limit || !supply.press_relatives()) return false;
      last_search().asked_relatives = true;
      return try_next(Tried::everything, Effort::all_pages);
    case Tried::everything: break;
  }
  return false;
}

// The device may be asked, unless it is held or the stream is being captured. Cached memory was looked for before, but
// none that would be better cut.
bool Escalation::try_device(Status& done) noexcept {
  if (supply_.is_held()) return try_next(Tried::held, Effort::cached_only);
  if (const Status allowed = supply_.book_.refuse_capture(stream_); !allowed) {
    done = refused_ = allowed;
    return tried_ != Tried::nothing && try_next(Tried::captured, Effort::cached_only);
  }
  return try_next(Tried::usual, Effort::usual);
}

// A piece should be cut that the stream may still use. The work behind it goes on meanwhile.
bool Escalation::await_cut() noexcept {
  const std::uint64_t point = supply_.core().space.awaited_point();
  const bool waits = supply_.core().wait_for_streams && cut_waits_left_-- > 0 && supply_.book_.wait_for(stream_, point);
  return waits && !supply_.is_held() ? try_next(Tried::usual, Effort::usual) : try_next(Tried::uncut, Effort::uncut);
}

// All that is free is brought into the space.
void Escalation::gather() noexcept {
  const PoolCore& core = supply_.core();
  const Space::Figures& figures = core.space.figures();
  const std::size_t live = figures.live;
  const std::uint64_t moves = figures.moves;
  supply_.gather(Wait::no);
  last_search() = {.pool = core.id,
                   .emptied_bytes = live - std::min(live, figures.live),
                   .moves = moves,  // until now
                   .waits_for_streams = core.wait_for_streams};
  if (core.wait_for_streams) waits_left_ = supply_.book_.most_waits();
}

void Escalation::note_refusal() noexcept {
  SearchSteps& search = last_search();
  if (tried_ < Tried::all_pages)
    search.pool = 0;  // nothing was searched
  else
    search.moves = supply_.core().space.figures().moves - search.moves;
}

bool Escalation::may_go_on(const Status& done) const noexcept {
  return done.failure().code == ErrorCode::out_of_memory && !supply_.is_held();
}

}  // namespace berth::internal::memory
