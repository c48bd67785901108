// SPDX-License-Identifier: Apache-2.0
#include "memory/space/page_plan.h"

#include <algorithm>
#include <optional>

#include "berth/base/checked.h"
#include "memory/space/page_source.h"
#include "memory/space/piece_length.h"

namespace berth::internal::memory {

namespace {

using Kind = FillStep::Kind;

constexpr std::size_t kEdgesShare = 100;  // bytes handed out, for each of edges that moves
constexpr std::size_t kLeastUnits = 16;   // of a span that is moved from far and wide while there is memory to commit
// Before a request is refused, a host exchanges shorter spans than these: a move takes as long as the exchange and the
// page faults of 4 to 8 pages.
constexpr std::size_t kLeastMovedUnits = 8;

class FillPlanner {
 public:
  FillPlanner(const PageView& view, const FillRequest& request, FillPlan& plan) noexcept : view_(view), request_(request), plan_(plan) {
    std::size_t missing = 0;
    for (const PoolExtent* e = request.first; e != nullptr && e->begin < request.end; e = e->next) missing += e->has_memory ? 0 : e->bytes;
    const std::size_t peak = std::max(view.peak_live, view.live + request.block.bytes());
    const double page_bound = view.churns && view.rules.pays_by_the_piece() ? view.rules.churn_bound : view.rules.page_bound;
    pages_wanted_ = std::max(beyond(page_bound, peak, missing), missing > view.room ? missing : 0);
    scattered_wanted_ = view.rules.in_pieces() || view.rules.fixed_pages ? 0 : beyond(view.rules.scattered_bound, peak, missing);
    if (request.all_pages || view.moved_edges < view.handed_out / kEdgesShare) edges_wanted_ = beyond(view.rules.edge_bound, peak, missing);
  }

  void run() noexcept {
    for (const PoolExtent* e = request_.first; e != nullptr && e->begin < request_.end; e = e->next) {
      if (e->has_memory) continue;
      for (PageSpan target{e->begin, e->end()}; !target.empty(); target.begin = plan_.step[plan_.count - 1].target.end) {
        if (plan_.count == kMostSteps) return;
        plan_.step[plan_.count++] = plan_step(target);
      }
    }
  }

 private:
  // How much of what is missing would exceed a bound on all that is committed.
  std::size_t beyond(double factor, std::size_t peak, std::size_t missing) const noexcept {
    if (request_.all_pages) return missing;
    const std::size_t allowed = saturating_scale(peak, factor);
    const std::size_t wanted = view_.committed + view_.promised + missing;
    return wanted > allowed ? std::min(missing, wanted - allowed) : 0;
  }

  // For the target, or the front of it.
  FillStep plan_step(const PageSpan& target) noexcept {
    FillStep step = find_move(target);
    if (step.source.empty()) {
      edges_wanted_ = 0;  // there are none left
      // Whole pages and long spans there may be, for a longer target.
      if (target.bytes() >= view_.rules.page_bytes) pages_wanted_ = scattered_wanted_ = 0;
      return plan_new(target);
    }
    const std::size_t bytes = step.source.bytes();
    if (bytes > target.bytes()) step.kind = Kind::replace;
    step.target = {target.begin, target.begin + std::min(bytes, target.bytes())};
    taken_.add(step.source);
    pages_wanted_ -= std::min(pages_wanted_, bytes);
    edges_wanted_ -= std::min(edges_wanted_, bytes);
    scattered_wanted_ -= std::min(scattered_wanted_, bytes);
    return step;
  }

  // Kind and source of a step, in the order of what costs least.
  FillStep find_move(const PageSpan& target) noexcept {
    // Either those or the others: what one has taken, the other does not know.
    if (longest_ && !request_.all_pages) return find_longest(std::min(target.bytes(), scattered_wanted_));
    if (request_.all_pages) {
      if (const FillStep step = find_longest(target.bytes()); !step.source.empty()) return step;
    }
    // A page that is beyond the bound in part moves, too.
    const std::size_t pages = std::min(target.bytes(), round_up(pages_wanted_, view_.rules.page_bytes));
    const std::size_t edges = std::min(target.bytes(), edges_wanted_);
    FillStep step{.kind = Kind::move};
    if (pages > 0) step.source = find_source(view_, taken_, {.most = pages, .longer = true, .all = request_.all_pages});
    if (step.source.empty() && pages > 0 && may_echo()) {
      step.source = find_source(view_, taken_, {.most = pages, .all = request_.all_pages, .stream = request_.stream});
      if (!step.source.empty()) {
        step.kind = Kind::move_in_use;
        step.stream = request_.stream;
        ++echoes_;
      }
    }
    if (step.source.empty() && edges > 0) {
      step.kind = Kind::move_edge;
      step.source = find_source(view_, taken_, {.most = edges, .edges = true});
    }
    if (step.source.empty() && taken_.count() == 0 && !request_.all_pages) return find_longest(std::min(target.bytes(), scattered_wanted_));
    return step;
  }

  // The longest free spans of all, in units.
  FillStep find_longest(std::size_t most) noexcept {
    if (scattered_wanted_ == 0 || (!request_.all_pages && most < kLeastUnits * view_.rules.unit_bytes)) return {};
    if (!longest_) longest_.emplace(view_);
    const PageSpan source = longest_->next(most);
    const std::size_t units = source.bytes() / view_.rules.unit_bytes;
    if (!request_.all_pages && units < kLeastUnits) return {};
    if (view_.rules.host_access && units < kLeastMovedUnits) return {.kind = Kind::exchange, .source = source};
    const bool whole = (source.begin | source.end) % view_.rules.page_bytes == 0;
    return {.kind = whole ? Kind::move : Kind::move_edge, .source = source};
  }

  bool may_echo() const noexcept {
    return request_.stream != 0 && request_.moves_in_use && view_.rules.move_in_use && echoes_ < view_.echo_room;
  }

  // Memory that this pool does not have yet: from the lender, else from the device.
  FillStep plan_new(const PageSpan& target) noexcept {
    const bool borrows = next_loan_ < request_.loans.size() && request_.loans[next_loan_].bytes <= target.bytes();
    const std::size_t bytes = borrows ? request_.loans[next_loan_].bytes : piece_length(view_, target, request_.block);
    FillStep step{.kind = borrows ? Kind::borrow : Kind::commit, .target = {target.begin, target.begin + bytes}};
    if (borrows) step.loan = next_loan_++;
    return step;
  }

  const PageView& view_;
  const FillRequest& request_;
  FillPlan& plan_;
  std::size_t pages_wanted_ = 0;      // so much is still to be moved rather than committed: in whole pages
  std::size_t edges_wanted_ = 0;      // and in edges,
  std::size_t scattered_wanted_ = 0;  // and from everywhere
  std::size_t next_loan_ = 0;
  std::size_t echoes_ = 0;
  TakenSpans taken_;
  std::optional<LongestSources> longest_;  // once memory is moved from everywhere
};

}  // namespace

FillPlan plan_fill(const PageView& view, const FillRequest& request) noexcept {
  FillPlan plan;
  FillPlanner(view, request, plan).run();
  return plan;
}

std::size_t list_missing(const FillRequest& request, std::span<std::size_t> bytes) noexcept {
  std::size_t count = 0;
  for (const PoolExtent* e = request.first; e != nullptr && e->begin < request.end && count < bytes.size(); e = e->next) {
    if (!e->has_memory) bytes[count++] = e->bytes;
  }
  return count;
}

LendPlan plan_lend(const PageView& view, std::span<const std::size_t> wanted, std::size_t most) noexcept {
  LendPlan plan;
  TakenSpans taken;
  most = std::min(most, kMostSteps);
  for (const std::size_t bytes : wanted) {
    for (std::size_t lent = 0; lent < bytes && plan.count < most;) {
      const PageSpan source = find_source(view, taken, {.most = bytes - lent});
      if (source.empty()) break;
      taken.add(source);
      plan.span[plan.count++] = source;
      lent += source.bytes();
    }
  }
  return plan;
}

PageSpan plan_adopt(const PageView& view, std::size_t bytes) noexcept {
  const PoolExtent* const bare = view.part(PagePart::large).bare_tree().first(bytes);
  if (bare == nullptr) return {};
  const std::size_t in_pages = round_up(bare->begin, view.rules.page_bytes);
  const std::size_t begin = in_pages + bytes <= bare->end() ? in_pages : bare->begin;
  return {begin, begin + bytes};
}

}  // namespace berth::internal::memory
