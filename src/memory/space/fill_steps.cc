// SPDX-License-Identifier: Apache-2.0
#include "memory/space/fill_steps.h"

#include <algorithm>

namespace berth::internal::memory {

namespace {

using Kind = FillStep::Kind;

PageOwner owner_of(const FillStep& step) noexcept { return step.kind == Kind::borrow ? PageOwner::lender : PageOwner::device; }

}  // namespace

const Budget* FillSteps::enter(PoolExtent* first, Wanted wanted) noexcept {
  PoolExtent* target = first;
  for (const FillStep& step : plan_.steps()) {
    while (target->has_memory) target = target->next;
    if (const Budget* const refused = enter(step, target)) {
      if (wanted == Wanted::part && count_ > 0) return nullptr;
      for (std::size_t i = 0; i < count_; ++i) undo(plan_.step[i], entries_[i]);
      return refused;
    }
    target = target->next;
  }
  return nullptr;
}

const Budget* FillSteps::enter(const FillStep& step, PoolExtent* target) noexcept {
  Entry entry{.target = target};
  if (step.has_source()) {
    entry.source = state_.map.withdraw(step.source, step.stream);
  } else if (const Budget* const refused = state_.accounts.claim(step.claims(), owner_of(step))) {
    return refused;
  }
  if (step.kind == Kind::move_in_use) state_.echoes.expect();
  if (step.kind == Kind::move_edge) state_.accounts.note_edges(step.source.bytes());
  if (step.target.bytes() < target->bytes) state_.map.part_of(target->begin).split(target, step.target.bytes());
  entries_[count_++] = entry;
  return nullptr;
}

std::uint64_t FillSteps::youngest_in_use() const noexcept {
  std::uint64_t point = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    if (plan_.step[i].kind == Kind::move_in_use) point = std::max(point, entries_[i].source->point);
  }
  return point;
}

void FillSteps::account(const RunResult& result) noexcept {
  for (std::size_t i = 0; i < count_; ++i) {
    if (i < result.done)
      finish(plan_.step[i], entries_[i]);
    else if (i < result.done + result.lost)
      lose_source(plan_.step[i], entries_[i]);
    else
      undo(plan_.step[i], entries_[i]);
  }
  state_.accounts.note_peak();
  state_.accounts.note_cached();
}

void FillSteps::finish(const FillStep& step, const Entry& entry) noexcept {
  state_.map.note_memory(entry.target);
  if (step.kind == Kind::move_in_use) {
    state_.echoes.leave(entry.source, entry.target, state_.map);
    state_.accounts.begin_move();
  } else if (step.has_source()) {
    state_.accounts.move(step.source.bytes(), step.target.bytes());
    state_.map.become_bare(entry.source);
  } else {
    state_.accounts.gain(step.claims(), owner_of(step));
    if (step.kind == Kind::borrow) loans_[step.loan].end = Loan::End::moved;
  }
}

// Its memory is gone, and the target got none.
void FillSteps::lose_source(const FillStep& step, const Entry& entry) noexcept {
  if (step.kind == Kind::borrow) {
    loans_[step.loan].end = Loan::End::lost;
    undo(step, entry);
  } else {
    state_.accounts.move(step.source.bytes(), 0);
    state_.map.become_bare(entry.source);
  }
}

void FillSteps::undo(const FillStep& step, const Entry& entry) noexcept {
  if (step.kind == Kind::move_in_use) state_.echoes.forget();
  if (step.has_source())
    state_.map.put_back(entry.source);
  else
    state_.accounts.give_up_claim(step.claims(), owner_of(step));
}

}  // namespace berth::internal::memory
