// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "memory/space/page_plan.h"
#include "memory/space/page_run.h"
#include "memory/space/page_state.h"

// Enters a plan in the pool's tables before it is run, and accounts for it afterwards, both under the pool's
// mutex. In between its sources and targets are in transit. An object serves one plan, once.
namespace berth::internal::memory {

class FillSteps {
 public:
  // What `enter` may take from the node pool.
  static constexpr std::size_t kMostNodes = (Extents::kNodesPerCut + 1) * kMostSteps;

  // Keeps references to all of them.
  FillSteps(PageState& state, const FillPlan& plan, std::span<Loan> loans) noexcept : state_(state), plan_(plan), loans_(loans) {}

  // Claims what the plan claims, takes its sources out of the trees, and cuts the extents from `first` on into
  // its targets. Returns the limit that would be exceeded, with nothing changed but cuts, or nullptr. If part
  // of the plan is wanted too, it ends before the first step that would exceed a limit, unless that is the
  // first: a piece that is replaced by a shorter one leaves room for the next. REQUIRES: nothing was changed
  // since it was planned.
  enum class Wanted : bool { all, part };
  [[nodiscard]] const Budget* enter(PoolExtent* first, Wanted wanted = Wanted::all) noexcept;
  std::size_t entered() const noexcept { return count_; }  // steps

  // The youngest free of the memory that moves while its stream may still use it; 0: none does.
  std::uint64_t youngest_in_use() const noexcept;

  // Accounts for what the steps have changed, done or not. Sets how each loan ended.
  void account(const RunResult& result) noexcept;

 private:
  struct Entry {
    PoolExtent* source = nullptr;  // nullptr: from outside
    PoolExtent* target = nullptr;
  };

  const Budget* enter(const FillStep& step, PoolExtent* target) noexcept;
  void finish(const FillStep& step, const Entry& entry) noexcept;
  void lose_source(const FillStep& step, const Entry& entry) noexcept;
  void undo(const FillStep& step, const Entry& entry) noexcept;

  PageState& state_;
  const FillPlan& plan_;
  const std::span<Loan> loans_;
  std::array<Entry, kMostSteps> entries_;
  std::size_t count_ = 0;  // of those that were entered
};

}  // namespace berth::internal::memory
