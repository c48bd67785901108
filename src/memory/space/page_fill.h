// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "berth/base/result.h"
#include "memory/space/fill_steps.h"
#include "memory/space/page_lender.h"
#include "memory/space/page_plan.h"
#include "memory/space/page_run.h"
#include "memory/space/page_state.h"
#include "os/lock/mutex.h"

// Finds memory for all of a window, in rounds of at most kMostSteps. One object for one window:
//
//     PageFill filling(...);
//     while (filling.enter()) filling.account(<run filling.steps() without the mutex>);
//     return filling.status();
//
// With the pool's mutex, which it releases while it calls the lender.
namespace berth::internal::memory {

// How hard to try.
enum class FillEffort : std::uint8_t {
  cached_well,  // cached memory, unless a piece were better cut first (piece_cut.h): without the device
  cached_only,  // any cached memory, without the device
  usual,
  uncut,      // the same, but no piece is cut
  all_pages,  // every free page is moved before a new one is committed
};

class PageFill {
 public:
  // For a block, a request of a stream.
  PageFill(os::Mutex& mutex, PageLender* lender, PageState& state, const Transit& window, const PageSpan& block, std::uint32_t stream,
           FillEffort effort) noexcept
      : mutex_(mutex),
        lender_(lender),
        state_(state),
        first_(window.first),
        request_{.first = window.first, .end = window.end, .block = block, .stream = stream, .all_pages = effort == FillEffort::all_pages} {
  }

  // Borrows, plans and enters the steps of the next round. False: nothing is missing any more, or there is a
  // failure, and the window has the memory that was found until then.
  [[nodiscard]] bool enter() noexcept;
  // What to run, and the loans that it refers to.
  std::span<const FillStep> steps() const noexcept { return plan_.steps(); }
  std::span<const Loan> loans() const noexcept { return std::span(loans_).first(loan_count_); }
  // Accounts for what the round has changed, done or not, and settles the loans.
  void account(const RunResult& result) noexcept;

  const Status& status() const noexcept { return status_; }
  // The point of the free until which the stream may still use some of the memory that was found; 0: none of
  // it.
  std::uint64_t point() const noexcept { return point_; }

 private:
  void skip_filled() noexcept;
  bool refuse(const Failure& failure) noexcept;
  void borrow() noexcept BERTH_NO_THREAD_ANALYSIS;
  void settle() noexcept BERTH_NO_THREAD_ANALYSIS;

  os::Mutex& mutex_;
  PageLender* const lender_;
  PageState& state_;
  PoolExtent* first_;  // == request_.first, from the first round on
  FillRequest request_;
  FillPlan plan_;
  std::optional<FillSteps> round_;
  std::array<Loan, kMostSteps> loans_;
  std::size_t loan_count_ = 0;
  std::uint64_t point_ = 0;
  Status status_;
};

}  // namespace berth::internal::memory
