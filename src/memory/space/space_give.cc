// SPDX-License-Identifier: Apache-2.0
#include "memory/inherited.h"
#include "memory/space/page_plan.h"
#include "memory/space/space.h"

// How a pool releases memory: to the device, to its lender, or to a borrower.
namespace berth::internal::memory {

// To the lender if there is one and it accepts, else to the device. False when the device refuses.
bool Space::decommit(const PageSpan& span, PageLender* to) noexcept {
  if (!state_.map.reserve_nodes(Extents::kNodesPerCut)) return false;
  PoolExtent* const pages = state_.map.withdraw(span, 0);
  bool adopted = false;
  const Status done = os::unlocked(mutex_, [&] {
    adopted = to != nullptr && to->adopt(base() + span.begin, span.bytes());
    return adopted ? Status() : backend_.decommit(base() + span.begin, span.bytes());
  });
  if (!done) {
    state_.map.put_back(pages);
    return false;
  }
  state_.accounts.trim(span.bytes(), adopted ? PageOwner::lender : PageOwner::device);
  state_.map.become_bare(pages);
  return true;
}

Trim Space::run_trim(Trim trim) noexcept {
  if (!is_open()) return trim;
  end_echoes();
  for (;;) {
    const os::NoFork no_fork(no_fork_during_calls(backend_), mutex_);
    const PageSpan span = next_to_trim(state_.view(), trim);
    if (span.empty()) return trim;
    if (!decommit(span, lender_) && !goes_on_after_refusal(state_.view(), trim)) return trim;
  }
}

// Whole pages first, so that huge ones stay whole while others are free, and then parts of pages, or pieces. It
// goes on where the last trim has stopped: the top is not always what was not used for the longest time.
void Space::trim_pages(std::size_t keep, std::size_t most) noexcept {
  constexpr std::size_t kLooks = 16;  // for each piece
  const PageRules& rules = state_.map.rules();
  const bool all = most > SIZE_MAX / kLooks;
  const std::size_t most_looks = all || !rules.in_pieces() ? SIZE_MAX : kLooks * most;
  Trim trim = all ? Trim{} : decay_;
  if (trim.grain == 0) trim.grain = rules.in_pieces() ? rules.unit_bytes : rules.page_bytes;
  trim.keep = keep;
  trim.most_spans = most;
  trim.most_looks = most_looks;
  const auto is_over = [&] { return trim.most_looks > 0 && trim.most_spans > 0 && cached_bytes() > keep; };
  trim = run_trim(trim);
  if (is_over() && trim.grain > rules.unit_bytes)
    trim = run_trim({.keep = keep, .grain = rules.unit_bytes, .most_spans = trim.most_spans, .most_looks = trim.most_looks});
  decay_ = all || is_over() ? Trim{} : trim;
}

void Space::trim_around(std::size_t begin, std::size_t bytes) noexcept {
  const os::NoFork no_fork(no_fork_during_calls(backend_), mutex_);
  end_echoes();
  PageSpan rest{begin, begin + bytes};
  for (;;) {
    const PageSpan span = next_to_trim_around(state_.view(), rest);
    if (span.empty() || !decommit(span, nullptr)) return;
  }
}

std::size_t Space::lend(std::span<const std::size_t> wanted, std::span<Loan> loans) noexcept {
  std::size_t count = 0;
  const LendPlan plan = plan_lend(state_.view(), wanted, loans.size());
  for (const PageSpan& span : plan.spans()) {
    if (!state_.map.reserve_nodes(Extents::kNodesPerCut)) break;
    loans[count++] = {.extent = state_.map.withdraw(span, 0), .address = base() + span.begin, .bytes = span.bytes()};
  }
  return count;
}

void Space::settle(std::span<const Loan> loans) noexcept {
  for (const Loan& loan : loans) {
    if (loan.end == Loan::End::kept) {
      state_.map.put_back(loan.extent);
      continue;
    }
    state_.accounts.lend(loan.bytes, loan.end == Loan::End::lost);
    state_.map.become_bare(loan.extent);
  }
  state_.accounts.note_cached();
}

bool Space::adopt(std::byte* pages, std::size_t bytes) noexcept {
  if (!backend_.properties().abilities.move || !state_.map.reserve_nodes(Extents::kNodesPerCut)) return false;
  const PageSpan span = plan_adopt(state_.view(), bytes);
  if (span.empty()) return false;
  PoolExtent* const target = state_.map.withdraw_bare(span);
  const Status moved = os::unlocked(mutex_, [&] { return backend_.move(pages, base() + span.begin, bytes); });
  if (moved) {
    state_.accounts.adopt(bytes);
    state_.map.note_memory(target);
  }
  state_.map.leave({target, span.end});
  return moved.ok();
}

}  // namespace berth::internal::memory
