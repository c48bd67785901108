// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "memory/budget.h"
#include "memory/space/decay.h"

// The counters of a pool's memory: each function is one thing that happens to pages, and keeps figures, budget
// and decay consistent. It knows no extent. Not thread-safe: the pool locks.
//
//     committed + promised <= used of the budget          live <= peak_live, committed <= peak_committed
namespace berth::internal::memory {

struct PageFigures {
  std::size_t committed = 0;  // == live + cached + in transit with memory
  std::size_t peak_committed = 0;
  std::size_t live = 0;  // in extents handed out
  std::size_t peak_live = 0;
  std::uint64_t commits = 0;
  std::uint64_t decommits = 0;
  std::uint64_t moves = 0;
};

// Where memory comes from and goes to. What is exchanged with a lender stays claimed in the budgets below the
// pool's own.
enum class PageOwner : std::uint8_t { device, lender };

class PageAccounts {
 public:
  // Committed and promised memory is claimed from the budget. The decay is informed of what is used and what is
  // released.
  PageAccounts(Budget& budget, Decay& decay) noexcept : budget_(budget), decay_(decay) {}

  const PageFigures& figures() const noexcept { return figures_; }
  std::size_t cached() const noexcept { return figures_.committed - figures_.live; }
  std::size_t promised() const noexcept { return promised_; }
  std::size_t handed_out() const noexcept { return handed_out_; }
  std::size_t moved_edges() const noexcept { return moved_edges_; }
  std::size_t room() const noexcept { return std::min(budget_.room(), device_room_ - std::min(device_room_, figures_.committed)); }
  std::size_t limit() const noexcept { return budget_.limit(); }

  // An extent becomes live.
  void hand_out(std::size_t bytes) noexcept {
    figures_.live += bytes;
    figures_.peak_live = std::max(figures_.peak_live, figures_.live);
    decay_.saw(cached());
    handed_out_ += bytes;
    ++requests_;
  }
  void take_back(std::size_t bytes) noexcept { figures_.live -= bytes; }
  // What was handed out served no request: it was committed ahead.
  void was_ahead(std::size_t bytes) noexcept { handed_out_ -= bytes; }

  // To be called before memory is requested. Returns the limit that would be exceeded, or nullptr; then the
  // memory is promised until one of the next two is called.
  [[nodiscard]] const Budget* claim(std::size_t bytes, PageOwner from) noexcept;
  void gain(std::size_t bytes, PageOwner from) noexcept;
  void give_up_claim(std::size_t bytes, PageOwner from) noexcept;

  // Pages have moved within the range, or so many were decommitted and others committed instead.
  void move(std::size_t from_bytes, std::size_t to_bytes) noexcept;
  void begin_move() noexcept;  // pages are mapped at two addresses now
  void note_edges(std::size_t bytes) noexcept { moved_edges_ += bytes; }

  // Whether it matters that free memory is pinned in pieces: there is little room for more, or more was committed
  // for it than cuts have spared since.
  bool cuts_matter() const noexcept { return (cuts_due_ > 0 && !churns()) || is_tight(); }
  bool is_tight() const noexcept { return room() < figures_.peak_live / kRoomShare; }
  // So much was committed beyond what there should be, while as much was pinned. A cut has spared so much.
  void note_excess(std::size_t bytes) noexcept { cuts_due_ += churns() ? 0 : bytes; }
  void note_cut(std::size_t spared) noexcept {
    cuts_due_ -= std::min(cuts_due_, spared);
    calls_ += kCallsPerCut - 1;  // it counts as a move as well
  }
  // Whether requests cost more moves than they should: sizes at random, again and again. Then memory is committed
  // instead, which ends that.
  bool churns() const noexcept { return calls_ > kFreeCalls + requests_ / kRequestsPerCall; }
  // The device has no more, until it gives more after all.
  void note_device_full() noexcept { device_room_ = figures_.committed; }

  void trim(std::size_t bytes, PageOwner to) noexcept;
  // The borrower has the pages, or they were lost on the way.
  void lend(std::size_t bytes, bool lost) noexcept;
  // A borrower's pages are this pool's now.
  void adopt(std::size_t bytes) noexcept;
  void close() noexcept { budget_.give_up(figures_.committed); }

  // To be called when all that belongs together is counted.
  void note_peak() noexcept { figures_.peak_committed = std::max(figures_.peak_committed, figures_.committed); }
  void note_cached() noexcept { decay_.saw(cached()); }

  // Against the sums of the extents that are live, that are live or cached, and that are in transit: of those
  // it is not known whether they have memory.
  std::string audit(std::size_t live, std::size_t held, std::size_t moving) const;

 private:
  // On a GPU a move takes some 50 µs: the first 25 ms are free, so that a program finds its sizes, and then each request
  // may cost 50 ns.
  static constexpr std::uint64_t kFreeCalls = 512;
  static constexpr std::uint64_t kRequestsPerCall = 1024;
  static constexpr std::uint64_t kCallsPerCut = 3;
  static constexpr std::size_t kRoomShare = 8;  // what is pinned where there is less room will be missing soon

  void give_up(std::size_t bytes, PageOwner to) noexcept { to == PageOwner::lender ? budget_.give_up_here(bytes) : budget_.give_up(bytes); }

  Budget& budget_;
  Decay& decay_;
  PageFigures figures_;
  std::size_t promised_ = 0;     // claimed, and not yet gained
  std::size_t handed_out_ = 0;   // all bytes ever handed out
  std::size_t moved_edges_ = 0;  // all bytes of edges ever moved
  std::size_t cuts_due_ = 0;
  std::uint64_t requests_ = 0;
  std::uint64_t calls_ = 0;             // of the device, for moves and cuts
  std::size_t device_room_ = SIZE_MAX;  // committed when the device last had no more
};

}  // namespace berth::internal::memory
