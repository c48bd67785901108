// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "memory/space/free_spans.h"
#include "memory/space/page_lender.h"
#include "memory/space/page_view.h"

// Where the memory under a window comes from, and which pages are lent, as data: spans of offsets. Pure
// functions without a heap or a device; fill_steps.h enters a plan in the pool's tables, and page_run.h runs
// it.
//
// As long as all that is committed stays within `page_bound` times the most that was ever live, what is missing
// is committed. Beyond that whole free pages are moved there; then, if the device can, pages that the request's
// own stream may still use; and then, at a limited rate, free edges of pages that are partly live; and beyond
// `scattered_bound` all free spans of some units, the longest first. What is missing after that is borrowed or
// committed. Before a request is refused (all_pages), free memory is moved, or exchanged, in the device's units,
// from the longest extents first.
namespace berth::internal::memory {

inline constexpr std::size_t kMostSteps = TakenSpans::kMost;

struct FillStep {
  enum class Kind : std::uint8_t {
    move,         // whole free pages, or a piece
    move_in_use,  // the same, while their stream may still use them: their old addresses become an echo
    move_edge,    // free units of pages that are partly live
    replace,      // a piece that is longer than the target is decommitted, and the target committed
    exchange,     // the same for a few units of host memory, with one commit for targets in a row
    borrow,       // a loan is moved here
    commit,
  };
  Kind kind = Kind::commit;
  PageSpan source{};         // cached memory of this range, except for `borrow` and `commit`
  PageSpan target{};         // of the same length, except for `replace`
  std::uint32_t stream = 0;  // whose work may still touch the source; 0: none's
  std::size_t loan = 0;      // of `borrow`: its index

  bool has_source() const noexcept { return kind != Kind::borrow && kind != Kind::commit; }
  // What is claimed of the budget before the step: memory that this pool does not have yet.
  std::size_t claims() const noexcept { return has_source() ? 0 : target.bytes(); }
  friend bool operator==(const FillStep&, const FillStep&) = default;
};

// The first steps, in the order of their targets, which they cover without a gap: when there are kMostSteps,
// more may be missing.
struct FillPlan {
  std::array<FillStep, kMostSteps> step;
  std::size_t count = 0;

  std::span<const FillStep> steps() const noexcept { return std::span(step).first(count); }
};

struct FillRequest {
  const PoolExtent* first = nullptr;  // neighbours in transit, of which some have memory
  std::size_t end = 0;                // of the last of them
  PageSpan block{};                   // what becomes live: the window has whole pages, and what is committed ahead
  std::uint32_t stream = 0;           // the request's
  bool all_pages = false;             // every free page is moved before one is committed
  bool moves_in_use = true;           // false after the device has refused to
  std::span<const Loan> loans{};      // what there is to borrow: used in this order
};

FillPlan plan_fill(const PageView& view, const FillRequest& request) noexcept;

// Which spans have no memory, as byte counts, as many as there is room for. Returns how many there are.
std::size_t list_missing(const FillRequest& request, std::span<std::size_t> bytes) noexcept;

// Whole free pages for pieces of so many bytes, in that order, as PageLender::lend has it: at most
// kMostSteps.
struct LendPlan {
  std::array<PageSpan, kMostSteps> span;
  std::size_t count = 0;

  std::span<const PageSpan> spans() const noexcept { return std::span(span).first(count); }
};
LendPlan plan_lend(const PageView& view, std::span<const std::size_t> wanted, std::size_t most) noexcept;

// Bare addresses for pages that are taken over: the first that are enough, at a whole page if they reach that
// far. Empty: there are none.
PageSpan plan_adopt(const PageView& view, std::size_t bytes) noexcept;

}  // namespace berth::internal::memory
