// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "berth/base/result.h"
#include "berth/device/backend.h"
#include "memory/budget.h"
#include "memory/pool/decay.h"
#include "memory/pool/extents.h"
#include "memory/pool/page_lender.h"
#include "memory/pool/piece_borders.h"
#include "os/lock/mutex.h"

// A pool's address range and the memory under it. It hands out extents, takes them back, and decides when to ask the device for memory,
// when to move pages from a hole to where they are needed, and when to give them back:
//
// - While a cached extent fits, the device is not asked.
// - Else the place is chosen where the least memory is missing. As long as all that is committed stays within `tight` times the most that
//   was ever live, what is missing is committed; beyond that, whole free pages are moved there from elsewhere, and then, at a limited
//   rate, free edges of pages that are partly live.
//
// Pages move from holes that nobody can be at work on. Where a device can move memory that is in use (Abilities::move_in_use), a request of a stream
// takes them also from what was freed on that stream, though its work is still under way: they are put under the new addresses at once, and
// leave the old ones, an *echo*, when that work is done. Nothing waits.
//
// The range has a part for slabs and a part for large blocks, so that a long-lived slab does not sit in the middle of a large hole.
//
// Where a device commits in pieces that only move and go back whole (BackendProperties::piece_bytes), pages are moved and given back piece by
// piece. One that is longer than what is missing is given back, and the missing memory taken anew. Where it is their number that costs, a
// commit goes on behind the block, as far as the bound leaves room, and pieces are as long as a small part of what is live.
//
// The pool's mutex guards everything: it is held by whoever calls (which clang cannot check across classes). Functions that go to the
// device let go of it meanwhile; what they work on is `transit` until they are back, and nobody else touches that.
namespace berth::internal::memory {

struct SpaceSettings {
  std::size_t page_bytes = 0;    // what is moved and committed at a time: the unit, or a huge page where there are some
  bool fixed_pages = false;      // pages stay under their addresses until they are given back
  double tight = 1.010;          // whole pages are moved when committed memory would exceed this much of the peak
  double tighter_edges = 1.014;  // and edges when it would exceed this
};

class Space {
 public:
  enum class Part : std::uint8_t { slabs, large };
  // How hard to try. `all_pages` moves every free page before it commits a new one.
  enum class Effort : std::uint8_t { cached_only, usual, all_pages };

  struct Figures {
    std::size_t committed = 0;       // == live + cached + in transit with memory
    std::size_t peak_committed = 0;  //
    std::size_t live = 0;            // in extents handed out
    std::size_t peak_live = 0;
    std::uint64_t commits = 0;
    std::uint64_t decommits = 0;
    std::uint64_t moves = 0;
  };

  // With a lender, its pages are taken before the device is asked for new ones, and what is trimmed goes to it.
  Space(Backend& backend, os::Mutex& mutex, const SpaceSettings& settings, Budget& budget, Decay& decay, PageLender* lender) noexcept
      : backend_(backend), mutex_(mutex), settings_(settings), budget_(budget), decay_(decay), lender_(lender) {}

  // Reserves the addresses, once. Goes to the device.
  Status open() noexcept BERTH_NO_THREAD_ANALYSIS;
  bool is_open() const noexcept { return base_ != nullptr; }
  // Gives everything back. REQUIRES: nobody uses any of it.
  void close() noexcept;

  std::byte* base() const noexcept { return base_; }         // never changes once open
  std::size_t size_bytes() const noexcept { return size_; }  //
  std::size_t split() const noexcept { return split_; }      // and where the part for large blocks begins
  bool add_stream(std::uint32_t stream) noexcept;

  // An extent in state `live`. REQUIRES: open; bytes is a multiple of kGrain; alignment is a power of two.
  Result<PoolExtent*> take(Part part, std::size_t bytes, std::size_t alignment, std::uint32_t stream, Effort effort) noexcept;
  // Gives one back: to be used by the stream at once, by others when it is clean.
  PoolExtent* give(PoolExtent* extent, std::uint32_t stream, std::uint64_t point) noexcept;
  void clean(std::uint32_t stream, std::uint64_t point) noexcept;
  // All work of a stream is done, and another may have its number from now on.
  void end_stream(std::uint32_t stream) noexcept;
  // Passes what the frees of one stream up to a point have left on to another, as if freed on that with point `as`.
  bool pass_on(std::uint32_t from, std::uint64_t point, std::uint32_t to, std::uint64_t as) noexcept;
  // Makes a live extent longer in place, when what follows is free and may be used by the stream. REQUIRES: more bytes than it has, a multiple
  // of kGrain; nobody else frees or grows it meanwhile.
  bool grow(PoolExtent* extent, std::size_t bytes, std::uint32_t stream, Effort effort) noexcept;

  // To the address sanitizer, where the host may touch the memory: a live extent that nobody has been given bytes of yet.
  void make_untouchable(const PoolExtent& extent) const noexcept;
  // And that everything may be touched, for whoever has these addresses next.
  void make_touchable() const noexcept;

  // Commits ahead, until so many bytes are cached in one piece.
  Status reserve(std::size_t bytes) noexcept;
  // Gives clean cached memory back: until at most `keep` bytes are cached, or the pages around a range that was just given.
  void trim(std::size_t keep) noexcept { trim(keep, backend_.properties().unit_bytes, SIZE_MAX); }
  // The same in whole pages, so that huge ones stay whole, and in a few pieces at most.
  void trim_pages(std::size_t keep, std::size_t most_pieces) noexcept { trim(keep, settings_.page_bytes, most_pieces); }
  void trim_around(std::size_t begin, std::size_t bytes) noexcept;

  // The lender's side, as PageLender has it. REQUIRES: open.
  std::size_t lend(std::span<const std::size_t> wanted, std::span<Loan> loans) noexcept;
  void settle(std::span<const Loan> loans) noexcept;
  bool adopt(std::byte* pages, std::size_t bytes) noexcept BERTH_NO_THREAD_ANALYSIS;

  const Figures& figures() const noexcept { return figures_; }
  std::size_t cached_bytes() const noexcept { return figures_.committed - figures_.live; }
  std::size_t longest_cached() const noexcept;
  const Extents& part(Part part) const noexcept { return *parts_[static_cast<std::size_t>(part)]; }
  PoolExtent* extent(std::uint32_t index) const noexcept { return nodes_.at(index); }

  std::string audit() const;

  static constexpr std::size_t kGrain = 4096;

 private:
  struct Window {
    std::size_t begin = 0;  // of the block
    std::size_t missing = SIZE_MAX;
    PoolExtent* first = nullptr;  // the free extents it touches
    std::size_t extents = 0;
  };
  struct Step {
    PoolExtent* source = nullptr;  // in this range, or in the lender's with a loan; nullptr: committed anew
    PoolExtent* target = nullptr;  // of the same length; or shorter: the source is given back, and the target committed anew
    Loan* loan = nullptr;
    bool source_gave = false;  // its memory, which it has no longer; the extent itself is told under the lock: a snapshot may look at it
    bool leaves_echo() const noexcept { return loan == nullptr && source != nullptr && source->stream != 0; }
  };
  static constexpr std::size_t kPieceShare = 32;  // the part of the most that was live that a piece may be as long as
  static constexpr std::size_t kMostSteps = 64;
  struct Steps {
    std::array<Step, kMostSteps> step;
    std::size_t count = 0;
  };

  struct Loans {
    std::array<Loan, kMostSteps> loan;
    std::size_t count = 0;
    std::size_t next = 0;  // to be used
  };

  // Of offsets, which are far from where that would wrap.
  static std::size_t up(std::size_t value, std::size_t to) noexcept { return (value + to - 1) & ~(to - 1); }

  Status open_alone() noexcept BERTH_NO_THREAD_ANALYSIS;
  Result<void*> reserve_range(std::size_t& size) noexcept;
  Result<void*> reserve_most(std::size_t& size, std::size_t alignment) noexcept;
  bool make_parts(std::size_t split, std::size_t size) noexcept;
  Extents& part_of(std::size_t offset) noexcept { return *parts_[offset < split_ ? 0 : 1]; }
  std::size_t aligned(std::size_t offset, std::size_t alignment) const noexcept;
  PoolExtent* make_live(PoolExtent* from, std::size_t begin, std::size_t bytes) noexcept;

  Window find_window(const Extents& part, std::size_t bytes, std::size_t alignment, std::uint32_t stream) const noexcept;
  void consider(Window& best, PoolExtent* run, std::size_t begin, std::size_t bytes) const noexcept;
  std::size_t ahead_of(const Window& window, std::size_t bytes) const noexcept;
  PoolExtent* enter_transit(const Window& window, std::size_t bytes, std::size_t ahead) noexcept;
  // For whom, and how hard to try; and what of the memory that was found the stream may still be at work on.
  struct Filling {
    std::uint32_t stream = 0;
    Effort effort = Effort::usual;
    std::uint64_t point = 0;   // until this free is over; 0: on none
    bool moves_in_use = true;  // until one has failed
  };
  Result<PoolExtent*> occupy(const Window& window, std::size_t bytes, Filling filling) noexcept;
  Status fill_window(PoolExtent* first, std::size_t end, Filling& filling) noexcept;
  void borrow(const PoolExtent* first, std::size_t end, Loans& loans) noexcept BERTH_NO_THREAD_ANALYSIS;
  void settle_own(const Loans& loans) noexcept BERTH_NO_THREAD_ANALYSIS;
  const Budget* plan_steps(PoolExtent* first, std::size_t end, const Filling& filling, Steps& steps, Loans& loans) noexcept;
  const Budget* plan_new(PoolExtent* target, Loans& loans, Step& step) noexcept;
  std::size_t most_piece() const noexcept;
  void take_promise_back(const Step& step) noexcept;
  enum class Longer : bool { no, yes };  // whether a source may be longer than what is wanted
  // Of what was freed on a stream, or with 0 of what no work can touch any more.
  PoolExtent* find_source(std::size_t most, bool edges, Longer longer, std::uint32_t stream) noexcept;
  PoolExtent* find_piece(std::size_t wanted, Longer longer, std::uint32_t stream) noexcept;
  bool can_echo(const Filling& filling) noexcept;
  void leave_echo(const Step& step) noexcept;
  void end_echoes() noexcept BERTH_NO_THREAD_ANALYSIS;
  bool is_over(std::uint32_t stream, std::uint64_t point) const noexcept { return stream == 0 || point <= done_[stream]; }
  // Makes an extent in transit cached again: its stream's, unless that is over by now.
  void free_as_before(PoolExtent* extent) noexcept;
  void account(const Step& step, bool done) noexcept;
  Status run_step(Step& step) noexcept;
  Status run_steps(Steps& steps) noexcept BERTH_NO_THREAD_ANALYSIS;
  void leave_transit(PoolExtent* first, std::size_t end) noexcept;
  // What has no memory under it any more. The address sanitizer is to know only of what has: to tell it of a whole range takes an eighth of that.
  void become_bare(PoolExtent* extent) noexcept;
  void make_touchable(const PoolExtent& extent) const noexcept;
  void trim(std::size_t keep, std::size_t grain, std::size_t most_pieces) noexcept;
  void trim_pieces(Extents& part, std::size_t keep, std::size_t& most_pieces) noexcept;
  void trim_pieces_around(std::size_t begin, std::size_t end) noexcept;
  bool in_pieces() const noexcept { return backend_.properties().piece_bytes != 0; }
  // Whether pieces cost by their number. Those of host memory cost by their bytes.
  bool pays_by_the_piece() const noexcept { return in_pieces() && !backend_.properties().abilities.host_access; }
  enum class To : bool { device, lender };
  bool decommit(PoolExtent* from, std::size_t begin, std::size_t end, To to) noexcept BERTH_NO_THREAD_ANALYSIS;

  Backend& backend_;
  os::Mutex& mutex_;
  SpaceSettings settings_;
  Budget& budget_;  // committed and promised memory is claimed here
  Decay& decay_;    // is told what is needed, and what goes back
  PageLender* const lender_;
  std::uint64_t opener_ = 0;  // the process, as fork_generation() + 1, that has a thread in `open`: a child does not wait for its parent's
  os::Condition opened_;
  std::byte* base_ = nullptr;
  std::size_t size_ = 0;
  std::size_t split_ = 0;  // slabs below, large blocks above
  Extents::Nodes nodes_;
  std::array<std::unique_ptr<Extents>, 2> parts_;
  PieceBorders borders_;
  std::vector<std::uint64_t> done_;  // by stream: frees up to this one are over
  std::vector<PoolExtent*> echoes_;  // those on stream 0 nothing can be at work on any more. Capacity for those to come
  std::size_t echoes_to_come_ = 0;
  Figures figures_;
  std::size_t promised_ = 0;     // being asked of the device: committed, when it says yes
  std::size_t handed_out_ = 0;   // all bytes ever handed out
  std::size_t moved_edges_ = 0;  // at most 1 % of that, unless memory is short
};

}  // namespace berth::internal::memory
