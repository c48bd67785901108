// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "berth/base/result.h"
#include "berth/device/backend.h"
#include "memory/budget.h"
#include "memory/space/decay.h"
#include "memory/space/page_fill.h"
#include "memory/space/page_lender.h"
#include "memory/space/page_state.h"
#include "memory/space/page_trim.h"
#include "memory/space/piece_cut.h"
#include "os/lock/mutex.h"
#include "os/process/fork.h"

// A pool's address range and the memory under it. It hands out extents and takes them back. While a cached
// extent fits, the device is not asked. Otherwise a window of free addresses is filled with memory
// (page_fill.h):
//
//     decide     pure functions of a view, which return data     page_window.h, page_plan.h, page_source.h
//     enter      sources and targets are in transit: no other    extent_map.h, fill_steps.h
//                thread touches them
//     run        on the device, without the mutex                page_run.h
//     account    what was done is counted, and transit ends      fill_steps.h, page_accounts.h
//
// Memory that leaves is decided on in the same way (page_trim.h), one span at a time, and decommitted here.
//
// Pages move from extents that no pending work can touch. Where a device can move memory that is in use
// (Abilities::move_in_use), a request of a stream takes them also from what was freed on that stream, though
// its work is still under way: they are mapped at the new addresses at once, and leave the old ones, an *echo*,
// when that work is done. Nothing waits.
//
// Where a device commits in pieces (BackendProperties::piece_bytes), pages are moved and decommitted in whole
// pieces. One that is longer than what is missing is decommitted, and the missing memory committed. Where it is
// their number that costs, a commit goes on behind the block, as far as the bound leaves room, and pieces are
// as long as a small part of what is live (piece_length.h). A block that would pin a part of a piece while memory is
// short gets the piece cut (piece_cut.h).
//
// The pool's mutex guards everything, and the caller holds it (which clang cannot check across classes).
// Functions that call the device release it meanwhile.
namespace berth::internal::memory {

class Space {
 public:
  using Part = PagePart;
  using Effort = FillEffort;
  using Figures = PageFigures;
  static constexpr std::size_t kGrain = kPageGrain;

  // With a lender, its pages are taken before the device is asked for new ones, and trimmed pages are passed to
  // it.
  Space(Backend& backend, os::Mutex& mutex, const PageRules& rules, Budget& budget, Decay& decay, PageLender* lender) noexcept
      : backend_(backend), mutex_(mutex), lender_(lender), state_(rules, budget, decay) {}

  // ---- the range

  // Reserves the addresses, once. Calls the device.
  Status open() noexcept BERTH_NO_THREAD_ANALYSIS;
  bool is_open() const noexcept { return base() != nullptr; }
  // Releases everything. REQUIRES: none of it is in use.
  void close() noexcept BERTH_NO_THREAD_ANALYSIS;
  // They never change once it is open. Slabs are below the split, large blocks above.
  std::byte* base() const noexcept { return state_.map.range().base; }
  std::size_t size_bytes() const noexcept { return state_.map.range().bytes; }
  std::size_t split() const noexcept { return state_.map.range().split; }
  std::size_t most_bytes() const noexcept { return state_.map.range().most_bytes; }

  // ---- extents

  // One in state `live`. REQUIRES: open; bytes is a multiple of kGrain; alignment is a power of two.
  // Fails with `busy` and Refusal::pending_work when a piece should be cut that the stream may still use: until it is
  // past `awaited_point()`, unless the effort is `uncut`.
  Result<PoolExtent*> take(Part part, std::size_t bytes, std::size_t alignment, std::uint32_t stream, Effort effort) noexcept;
  std::uint64_t awaited_point() const noexcept { return awaited_point_; }  // as of the last such failure, with the mutex since
  bool cuts_matter() const noexcept { return state_.accounts.cuts_matter(); }
  // Makes a live extent longer in place, when what follows is free and may be used by the stream. REQUIRES:
  // more bytes than it has, a multiple of kGrain; no other thread frees or grows it meanwhile.
  bool grow(PoolExtent* extent, std::size_t bytes, std::uint32_t stream, Effort effort) noexcept;
  // Frees one: the stream may use it at once, others when it is clean.
  PoolExtent* give(PoolExtent* extent, std::uint32_t stream, std::uint64_t point) noexcept;
  // Cuts a live extent in two, the first of so many bytes, and returns the second. REQUIRES: reserved, by
  // reserve_splits, which returns false when there is no heap.
  bool reserve_splits(std::size_t count) noexcept { return state_.map.reserve_nodes(count); }
  PoolExtent* split(PoolExtent* extent, std::size_t bytes) noexcept { return state_.map.split_live(extent, bytes); }
  // Commits ahead, until so many bytes are cached in one extent.
  Status reserve(std::size_t bytes) noexcept;

  // ---- streams

  bool add_stream(std::uint32_t stream) noexcept {
    note_user(stream);
    return state_.map.add_stream(stream);
  }
  // The frees of a stream up to a point are over.
  void clean(std::uint32_t stream, std::uint64_t point) noexcept;
  // All work of a stream is done, and another may have its number from now on.
  void end_stream(std::uint32_t stream) noexcept;
  // Passes what the frees of one stream up to a point have left on to another, as if freed on that with point
  // `as`.
  bool pass_on(std::uint32_t from, std::uint64_t point, std::uint32_t to, std::uint64_t as) noexcept {
    return state_.map.pass_on(from, point, to, as);
  }

  // ---- releasing memory: clean cached memory only

  // Until at most `keep` bytes are cached.
  void trim(std::size_t keep) noexcept { run_trim({.keep = keep, .grain = state_.map.rules().unit_bytes}); }
  // The same in a few spans at most, whole pages first.
  void trim_pages(std::size_t keep, std::size_t most) noexcept;
  // The pages around a range that was just given.
  void trim_around(std::size_t begin, std::size_t bytes) noexcept;

  // ---- the lender's side, as PageLender has it. REQUIRES: open

  std::size_t lend(std::span<const std::size_t> wanted, std::span<Loan> loans) noexcept;
  void settle(std::span<const Loan> loans) noexcept;
  bool adopt(std::byte* pages, std::size_t bytes) noexcept BERTH_NO_THREAD_ANALYSIS;

  // ---- what there is

  const Figures& figures() const noexcept { return state_.accounts.figures(); }
  std::size_t cached_bytes() const noexcept { return state_.accounts.cached(); }
  std::size_t pinned_bytes() const noexcept { return state_.map.pinned_bytes(); }
  std::size_t longest_cached() const noexcept { return is_open() ? state_.map.longest_cached() : 0; }
  const Extents& part(Part part) const noexcept { return state_.map.part(part); }
  PoolExtent* extent(std::uint32_t index) const noexcept { return state_.map.extent(index); }
  std::size_t table_bytes() const noexcept { return state_.map.table_bytes(); }
  std::string audit() const { return is_open() ? state_.audit() : std::string(); }

  // For the address sanitizer, where the host may touch the memory: poisons a live extent of which no bytes
  // have been handed out yet; unpoisons everything, for the next user of these addresses.
  void make_untouchable(const PoolExtent& extent) const noexcept { state_.map.make_untouchable(extent); }
  void make_touchable() const noexcept { state_.map.make_touchable(); }

 private:
  Status open_alone() noexcept BERTH_NO_THREAD_ANALYSIS;
  PageView view(Effort effort) const noexcept;
  // The cuts for one request: a few, as other threads may take what was cut.
  struct Cutting {
    Effort effort = Effort::usual;
    int left = 4;                         // two do, but for others
    std::optional<os::NoFork> no_fork{};  // from the first on

    bool is_over() const noexcept { return left == 0 || effort == Effort::cached_only || effort == Effort::uncut; }
    void end() noexcept { left = 0; }
  };
  Result<PoolExtent*> take_cached(Part part, std::size_t bytes, std::size_t alignment, std::uint32_t stream, Cutting& cutting) noexcept;
  Status cut_first(const PieceCut& cut, Cutting& cutting) noexcept BERTH_NO_THREAD_ANALYSIS;
  Result<PoolExtent*> find_or_fill(Part part, std::size_t bytes, std::size_t alignment, std::uint32_t stream, Effort effort) noexcept;
  void note_user(std::uint32_t stream) noexcept;
  void note_excess(const PageView& before, std::size_t block_bytes) noexcept;
  bool cut(const PieceCut& cut) noexcept BERTH_NO_THREAD_ANALYSIS;
  Result<PoolExtent*> occupy(const PageWindow& window, std::uint32_t stream, Effort effort) noexcept BERTH_NO_THREAD_ANALYSIS;
  void end_echoes() noexcept BERTH_NO_THREAD_ANALYSIS;
  Trim run_trim(Trim trim) noexcept;
  bool decommit(const PageSpan& span, PageLender* to) noexcept BERTH_NO_THREAD_ANALYSIS;

  Backend& backend_;
  os::Mutex& mutex_;
  PageLender* const lender_;
  OpeningTurn opening_;
  Trim decay_;  // the last trim of a few pieces: the next goes on from there
  std::uint64_t awaited_point_ = 0;
  std::optional<std::uint32_t> user_;  // the stream of the first request
  bool several_users_ = false;         // a request had another stream, or none
  PageState state_;
};

}  // namespace berth::internal::memory
