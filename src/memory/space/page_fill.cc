// SPDX-License-Identifier: Apache-2.0
#include "memory/space/page_fill.h"

#include <algorithm>

namespace berth::internal::memory {

bool PageFill::enter() noexcept {
  skip_filled();
  if (!status_ || request_.first == nullptr) return false;
  borrow();
  if (!state_.map.reserve_nodes(FillSteps::kMostNodes)) return refuse({ErrorCode::out_of_memory, 0, "no heap for the pool's tables"});
  if (state_.map.rules().move_in_use && request_.stream != 0) state_.echoes.make_room(kMostSteps);
  request_.loans = loans();
  plan_ = plan_fill(state_.view(), request_);
  round_.emplace(state_, plan_, std::span(loans_).first(loan_count_));
  const auto wanted = request_.all_pages ? FillSteps::Wanted::part : FillSteps::Wanted::all;
  if (const Budget* const limit = round_->enter(first_, wanted)) return refuse(limit->refusal());
  plan_.count = round_->entered();
  point_ = std::max(point_, round_->youngest_in_use());
  return true;
}

// What has memory is not looked at again: a window may be filled in hundreds of rounds.
void PageFill::skip_filled() noexcept {
  while (first_ != nullptr && first_->begin < request_.end && first_->has_memory) first_ = first_->next;
  if (first_ != nullptr && first_->begin >= request_.end) first_ = nullptr;
  request_.first = first_;
}

bool PageFill::refuse(const Failure& failure) noexcept {
  settle();
  status_ = failure;
  return false;
}

void PageFill::account(const RunResult& result) noexcept {
  round_->account(result);
  settle();
  if (result.status) return;
  // What could not be moved in use may be moved or committed otherwise.
  if (result.status.failure().cause == Refusal::not_moved && request_.moves_in_use)
    request_.moves_in_use = false;
  else
    status_ = result.status;
}

// Asks the lender for what is missing.
void PageFill::borrow() noexcept {
  if (lender_ == nullptr) return;
  std::array<std::size_t, kMostSteps> missing;
  const std::size_t count = list_missing(request_, missing);
  if (count == 0) return;
  loan_count_ = os::unlocked(mutex_, [&] { return lender_->lend(std::span(missing).first(count), loans_); });
}

void PageFill::settle() noexcept {
  if (loan_count_ == 0) return;
  os::unlocked(mutex_, [&] { lender_->settle(loans()); });
  loan_count_ = 0;
}

}  // namespace berth::internal::memory
