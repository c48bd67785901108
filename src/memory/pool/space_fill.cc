// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "berth/base/checked.h"
#include "berth/base/units.h"
#include "berth/device/backend.h"
#include "memory/pool/space.h"

// Where the memory under an extent comes from: pages of holes, a lender's, the device's.
namespace berth {

using namespace internal::memory;

namespace {

constexpr std::size_t kLeastEdge = 256_KiB;  // shorter edges are not worth a mapping of their own
constexpr std::size_t kMostSources = 64;     // extents looked at for one that has a whole page
constexpr std::size_t kLeastBound = 32_MiB;  // pieces of one block may be as long as this, or as kPieceShare allows
constexpr std::size_t kMostPieces = 256;     // and pieces, for the one that fits best

}  // namespace

Status Space::fill_window(PoolExtent* first, std::size_t end, Filling& filling) noexcept {
  for (;;) {
    if (!nodes_.reserve((Extents::kNodesPerCut + 1) * kMostSteps))
      return Failure{ErrorCode::out_of_memory, 0, "no heap for the pool's tables"};
    Loans loans;
    if (lender_ != nullptr) {
      borrow(first, end, loans);
      if (!nodes_.reserve((Extents::kNodesPerCut + 1) * kMostSteps)) {  // the lock was let go
        settle_own(loans);
        return Failure{ErrorCode::out_of_memory, 0, "no heap for the pool's tables"};
      }
    }
    Steps steps;
    Status done;
    if (const Budget* const refused = plan_steps(first, end, filling, steps, loans)) {
      for (std::size_t i = 0; i < steps.count; ++i) take_promise_back(steps.step[i]);
      done = refused->refusal();
    } else if (steps.count > 0) {
      for (const Step& step : std::span(steps.step).first(steps.count)) {
        if (step.leaves_echo()) filling.point = std::max(filling.point, step.source->point);
      }
      done = run_steps(steps);
    }
    settle_own(loans);
    if (!done && done.failure().cause == Refusal::not_moved && filling.moves_in_use) {
      filling.moves_in_use = false;
      continue;
    }
    if (!done || steps.count == 0) return done;
  }
}

// Asks the lender for what is missing, without the lock.
void Space::borrow(const PoolExtent* first, std::size_t end, Loans& loans) noexcept {
  std::array<std::size_t, kMostSteps> wanted;
  std::size_t count = 0;
  for (const PoolExtent* e = first; e != nullptr && e->begin < end && count < kMostSteps; e = e->next) {
    if (!e->has_memory) wanted[count++] = e->bytes;
  }
  if (count == 0) return;
  loans.count = os::unlocked(mutex_, [&] { return lender_->lend(std::span(wanted).first(count), loans.loan); });
}

void Space::settle_own(const Loans& loans) noexcept {
  if (loans.count == 0) return;
  os::unlocked(mutex_, [&] { lender_->settle(std::span(loans.loan).first(loans.count)); });
}

// The step will not be run.
void Space::take_promise_back(const Step& step) noexcept {
  if (step.leaves_echo()) --echoes_to_come_;
  if (step.loan == nullptr && step.source != nullptr) {
    free_as_before(step.source);
    return;
  }
  promised_ -= step.target->bytes;
  if (step.loan != nullptr)
    budget_.give_up_here(step.target->bytes);
  else
    budget_.give_up(step.target->bytes);
}

// Decides where the missing memory comes from, for as many pieces as there is room. Returns the limit that is in the way, or nullptr.
const Budget* Space::plan_steps(PoolExtent* first, std::size_t end, const Filling& filling, Steps& steps, Loans& loans) noexcept {
  const bool all_pages = filling.effort == Effort::all_pages;
  std::size_t missing = 0;
  std::size_t window_bytes = 0;
  for (const PoolExtent* e = first; e != nullptr && e->begin < end; e = e->next) {
    window_bytes += e->bytes;
    if (!e->has_memory) missing += e->bytes;
  }
  const auto peak = static_cast<double>(std::max(figures_.peak_live, figures_.live + window_bytes));
  const auto beyond = [&](double factor) {
    const auto allowed = static_cast<std::size_t>(factor * peak);
    const std::size_t wanted = figures_.committed + promised_ + missing;
    return all_pages ? missing : wanted > allowed ? std::min(missing, wanted - allowed) : 0;
  };
  std::size_t pages_wanted = std::max(beyond(settings_.tight), missing > budget_.room() ? missing : 0);
  const bool edges = all_pages || moved_edges_ < handed_out_ / 100;
  std::size_t edges_wanted = edges ? beyond(settings_.tighter_edges) : 0;
  for (PoolExtent* target = first; target != nullptr && target->begin < end; target = target->next) {
    if (target->has_memory) continue;
    if (steps.count == kMostSteps) return nullptr;
    const std::size_t most = std::min(target->bytes, pages_wanted);
    PoolExtent* source = most > 0 ? find_source(most, false, Longer::yes, 0) : nullptr;
    if (source == nullptr && most > 0 && can_echo(filling)) {
      source = find_source(most, false, Longer::no, filling.stream);
      echoes_to_come_ += source != nullptr ? 1 : 0;
    }
    if (source == nullptr && edges_wanted > 0) {
      source = find_source(std::min(target->bytes, edges_wanted), true, Longer::no, 0);
      if (source != nullptr) moved_edges_ += source->bytes;
    }
    Step step{.source = source, .target = target};
    if (source == nullptr) {
      pages_wanted = edges_wanted = 0;  // there is no more to be had
      if (const Budget* const refused = plan_new(target, loans, step)) return refused;
    } else {
      if (source->bytes < target->bytes) part_of(target->begin).split(target, source->bytes);
      pages_wanted -= std::min(pages_wanted, source->bytes);
      edges_wanted -= std::min(edges_wanted, source->bytes);
    }
    steps.step[steps.count++] = step;
  }
  return nullptr;
}

// What is committed at a time: the device makes one piece of it, up to its own bound. A piece that is long beside all that is live can hardly ever be
// taken back.
std::size_t Space::most_piece() const noexcept {
  if (!pays_by_the_piece()) return SIZE_MAX;
  return std::max(kLeastBound, align_down(figures_.peak_live / kPieceShare, settings_.page_bytes));
}

// Memory that this pool does not have yet: from the lender, else from the device. Claimed before it is asked for.
const Budget* Space::plan_new(PoolExtent* target, Loans& loans, Step& step) noexcept {
  if (loans.next < loans.count && loans.loan[loans.next].bytes <= target->bytes) {
    Loan& loan = loans.loan[loans.next];
    if (!budget_.claim_here(loan.bytes)) return &budget_;
    ++loans.next;
    if (loan.bytes < target->bytes) part_of(target->begin).split(target, loan.bytes);
    step.source = loan.extent;
    step.loan = &loan;
  } else {
    if (const std::size_t most = most_piece(); target->bytes > most) part_of(target->begin).split(target, most);
    if (const Budget* const refused = budget_.claim(target->bytes)) return refused;
  }
  promised_ += target->bytes;
  return nullptr;
}

// Cached memory to move elsewhere, at most so much of it: whole pages, from the highest address down, or edges of pages.
PoolExtent* Space::find_source(std::size_t most, bool edges, Longer longer, std::uint32_t stream) noexcept {
  if (settings_.fixed_pages) return nullptr;
  if (in_pieces()) return edges || most < settings_.page_bytes ? nullptr : find_piece(most, longer, stream);
  const std::size_t unit = edges ? backend_.properties().unit_bytes : settings_.page_bytes;
  const std::size_t wanted = align_down(most, unit);
  const std::size_t least = edges ? std::min(kLeastEdge, wanted) : unit;
  if (wanted == 0) return nullptr;
  for (const std::size_t which : {1U, 0U}) {
    Extents& part = *parts_[which];
    const ExtentTree& tree = part.tree(stream);
    std::size_t looked_at = 0;
    for (PoolExtent* e = tree.last(least); e != nullptr && looked_at < kMostSources; e = tree.previous(e, least)) {
      ++looked_at;
      const std::size_t from = up(e->begin, unit);
      const std::size_t to = align_down(e->end(), unit);
      if (to <= from || to - from < least) continue;
      const std::size_t bytes = std::min(to - from, wanted);
      return part.cut(e, to - bytes, bytes, ExtentState::transit);
    }
  }
  return nullptr;
}

// A whole free piece: the shortest of those that are long enough, else the longest of the others.
PoolExtent* Space::find_piece(std::size_t wanted, Longer longer, std::uint32_t stream) noexcept {
  PieceSpan best;
  PoolExtent* from = nullptr;
  const auto is_better = [&](std::size_t bytes) {
    if (bytes > wanted && longer == Longer::no) return false;
    if (from == nullptr) return true;
    return bytes >= wanted ? best.bytes() < wanted || bytes < best.bytes() : best.bytes() < wanted && bytes > best.bytes();
  };
  std::size_t looked_at = 0;
  for (const std::size_t which : {1U, 0U}) {
    const ExtentTree& tree = parts_[which]->tree(stream);
    const std::size_t page = settings_.page_bytes;
    for (PoolExtent* e = tree.last(page); e != nullptr && looked_at < kMostPieces; e = tree.previous(e, page)) {
      for (std::size_t end = e->end(); looked_at < kMostPieces; ++looked_at) {
        const PieceSpan piece = borders_.last_within(e->begin, end);
        if (piece.bytes() == 0) break;
        end = piece.begin;
        if (!is_better(piece.bytes())) continue;
        best = piece;
        from = e;
        if (best.bytes() == wanted) looked_at = kMostPieces;
      }
      ++looked_at;
    }
  }
  return from == nullptr ? nullptr : part_of(best.begin).cut(from, best.begin, best.bytes(), ExtentState::transit);
}

// Without the lock. On failure the source may have lost its memory all the same: the step then says so.
Status Space::run_step(Step& step) noexcept {
  std::byte* const target = base_ + step.target->begin;
  const std::size_t bytes = step.target->bytes;
  if (step.leaves_echo()) {
    const Status moved = backend_.begin_move(base_ + step.source->begin, target, bytes);
    if (moved || moved.failure().code == ErrorCode::device_lost) return moved;
    return Failure{ErrorCode::out_of_memory, moved.failure().os_error, "pages that are in use did not move", Refusal::not_moved};
  }
  if (step.source != nullptr) {
    std::byte* const source = step.loan != nullptr ? step.loan->address : base_ + step.source->begin;
    const bool same = step.source->bytes == bytes;
    if (same && backend_.properties().abilities.move && backend_.move(source, target, bytes)) {
      step.source_gave = true;
      return {};
    }
    // Some kernels and limits do not let pages move: give back and take anew.
    const Status gone = backend_.decommit(source, step.source->bytes);
    if (!gone) return gone;
    step.source_gave = true;
  }
  return backend_.commit(target, bytes);
}

// What a step has changed, whether it was done or not.
void Space::account(const Step& step, bool done) noexcept {
  const std::size_t bytes = step.target->bytes;
  if (step.leaves_echo()) --echoes_to_come_;
  step.target->has_memory = done;
  if (done && in_pieces()) borders_.committed(step.target->begin, bytes);
  if (step.source == nullptr || step.loan != nullptr) {
    if (done) {
      promised_ -= bytes;
      figures_.committed += bytes;
      ++(step.loan != nullptr ? figures_.moves : figures_.commits);
    } else {
      take_promise_back(step);
    }
    if (step.loan != nullptr && step.source_gave) step.loan->end = done ? Loan::End::moved : Loan::End::lost;
  } else if (step.leaves_echo() && done) {
    leave_echo(step);
  } else if (!step.source_gave) {
    free_as_before(step.source);
  } else {
    const std::size_t less = step.source->bytes - (done ? bytes : 0);
    figures_.committed -= less;
    budget_.give_up(less);
    ++figures_.moves;
    ++figures_.decommits;
    become_bare(step.source);
  }
}

Status Space::run_steps(Steps& steps) noexcept {
  std::size_t done = 0;
  const Status status = os::unlocked(mutex_, [&] {
    Status last;
    while (done < steps.count && last.ok()) {
      last = run_step(steps.step[done]);
      if (last) ++done;
    }
    return last;
  });
  for (std::size_t i = 0; i < steps.count; ++i) account(steps.step[i], i < done);
  figures_.peak_committed = std::max(figures_.peak_committed, figures_.committed);
  decay_.saw(cached_bytes());
  return status;
}

// Puts what a failed request had taken back as it is now.
void Space::leave_transit(PoolExtent* first, std::size_t end) noexcept {
  Extents& part = part_of(first->begin);
  for (PoolExtent* e = first; e != nullptr && e->begin < end;) {
    PoolExtent* const following = e->next;
    if (e->has_memory)
      free_as_before(e);
    else
      part.free_bare(e);
    e = following;
  }
}

void Space::free_as_before(PoolExtent* extent) noexcept {
  part_of(extent->begin).free_cached(extent, is_over(extent->stream, extent->point) ? 0 : extent->stream, extent->point);
}

// ---- memory that moves while a stream is at work on it

// Whether what was freed on a stream may move before its work is done, with room to remember where it was.
bool Space::can_echo(const Filling& filling) noexcept {
  if (filling.stream == 0 || !filling.moves_in_use || !backend_.properties().abilities.move_in_use) return false;
  try {
    const std::size_t wanted = echoes_.size() + echoes_to_come_ + 1;
    if (wanted > echoes_.capacity()) echoes_.reserve(2 * wanted);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void Space::leave_echo(const Step& step) noexcept {
  step.target->stream = step.source->stream;
  step.target->point = step.source->point;
  step.source->state = ExtentState::echo;
  step.source->has_memory = false;
  if (is_over(step.source->stream, step.source->point)) step.source->stream = 0;
  echoes_.push_back(step.source);
  ++figures_.moves;
  ++figures_.decommits;
}

// Lets go of the old addresses of what has moved, where nothing can be at work any more. Goes to the device.
void Space::end_echoes() noexcept {
  for (;;) {
    const auto over = std::ranges::find(echoes_, 0U, &PoolExtent::stream);
    if (over == echoes_.end()) return;
    PoolExtent* const echo = *over;
    *over = echoes_.back();
    echoes_.pop_back();
    echo->state = ExtentState::transit;
    const Status ended = os::unlocked(mutex_, [&] { return backend_.end_move(base_ + echo->begin, echo->bytes); });
    if (ended)
      become_bare(echo);
    else
      echo->state = ExtentState::echo;  // these addresses are lost, and nothing else
  }
}

}  // namespace berth
