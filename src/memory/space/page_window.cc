// SPDX-License-Identifier: Apache-2.0
#include "memory/space/page_window.h"

#include <algorithm>

#include "berth/base/checked.h"
#include "memory/space/piece_length.h"

namespace berth::internal::memory {

namespace {

constexpr std::size_t kAheadShare = 32;  // this part of the most that was ever live is committed ahead at most

bool is_usable(const PoolExtent* e, std::uint32_t stream) noexcept {
  return e != nullptr && (e->state == ExtentState::bare || (e->state == ExtentState::cached && (e->stream == 0 || e->stream == stream)));
}

// A run of neighbours that a stream may use: maximal, or as long as it was looked at.
struct Run {
  const PoolExtent* first;
  const PoolExtent* last;
};

Run run_around(const PoolExtent* free, std::uint32_t stream, std::size_t most) noexcept {
  Run run{free, free};
  for (std::size_t i = 0; i < most && is_usable(run.first->previous, stream); ++i) run.first = run.first->previous;
  for (std::size_t i = 0; i < most && is_usable(run.last->next, stream); ++i) run.last = run.last->next;
  return run;
}

// The extents under a window that moves through a run, from its front to its end, and what is bare of them.
class Slide {
 public:
  Slide(const Run& run, std::size_t page) noexcept : first_(run.first), next_(run.first), end_(run.last->next), page_(page) {}

  // REQUIRES: it lies in the run, and begins no lower than the last one.
  PageWindow move_to(std::size_t begin, std::size_t bytes) noexcept {
    for (; next_ != end_ && next_->begin < begin + bytes; next_ = next_->next) {
      bare_ += bare_bytes(next_);
      ++extents_;
      last_ = next_;
    }
    for (; first_->end() <= begin; first_ = first_->next) {
      bare_ -= bare_bytes(first_);
      --extents_;
    }
    return {.begin = begin, .bytes = bytes, .missing = bare_ - outside(begin, bytes), .first = first_, .extents = extents_};
  }

 private:
  static std::size_t bare_bytes(const PoolExtent* e) noexcept { return e->state == ExtentState::bare ? e->bytes : 0; }

  // What of the first and the last is bare and lies beyond the pages of the window.
  std::size_t outside(std::size_t begin, std::size_t bytes) const noexcept {
    const std::size_t from = align_down(begin, page_);
    const std::size_t to = round_up(begin + bytes, page_);
    std::size_t sum = 0;
    if (first_->state == ExtentState::bare && first_->begin < from) sum += from - first_->begin;
    if (last_->state == ExtentState::bare && last_->end() > to) sum += last_->end() - to;
    return sum;
  }

  const PoolExtent* first_;           // that the window touches
  const PoolExtent* last_ = nullptr;  // that it has reached
  const PoolExtent* next_;            // behind that
  const PoolExtent* const end_;       // behind the run
  const std::size_t page_;
  std::size_t bare_ = 0;
  std::size_t extents_ = 0;
};

// The window for one block that is best so far.
class Search {
 public:
  Search(const PageView& view, std::size_t bytes, std::size_t alignment) noexcept : view_(view), bytes_(bytes), alignment_(alignment) {}

  // A block that begins with an extent, as far as its alignment allows, and one that ends with it. Returns how
  // many extents the run has.
  std::size_t consider(const Run& run) noexcept {
    std::size_t extents = 0;
    Slide beginning(run, view_.rules.page_bytes);
    Slide ending(run, view_.rules.page_bytes);
    for (const PoolExtent* e = run.first; e != run.last->next; e = e->next, ++extents) {
      const std::size_t low = round_up(view_.base + e->begin, alignment_) - view_.base;
      if (fits(low, bytes_, run.last->end())) consider(beginning.move_to(low, bytes_));
      if (e->end() < run.first->begin + bytes_) continue;
      const std::size_t high = align_down(view_.base + e->end() - bytes_, std::max(alignment_, kPageGrain)) - view_.base;
      if (high >= run.first->begin && high < run.last->end()) consider(ending.move_to(high, bytes_));
    }
    return extents;
  }

  const PageWindow& best() const noexcept { return best_; }

 private:
  void consider(const PageWindow& window) noexcept {
    if (window.missing < best_.missing) best_ = window;
  }

  const PageView& view_;
  const std::size_t bytes_;
  const std::size_t alignment_;
  PageWindow best_;
};

// How much is looked at: runs, extents of a run to each side of where it was found, and extents in all.
struct Bounds {
  std::size_t runs = SIZE_MAX;
  std::size_t run_extents = SIZE_MAX;
  std::size_t extents = SIZE_MAX;
};

// The runs with bare addresses, from the lowest on. Returns the bare extent that comes next, or nullptr.
const PoolExtent* look_at_runs(const ExtentTree& tree, std::uint32_t stream, const Bounds& most, Search& search) noexcept {
  std::size_t runs = 0;
  std::size_t extents = 0;
  const PoolExtent* bare = tree.first(1);
  for (; bare != nullptr && runs < most.runs && extents < most.extents; ++runs) {
    const Run run = run_around(bare, stream, most.run_extents);
    extents += search.consider(run);
    while (bare != nullptr && bare->begin <= run.last->begin) bare = tree.next(bare, 1);
  }
  return bare;
}

}  // namespace

PageWindow find_window(const PageView& view, PagePart part, std::size_t bytes, std::size_t alignment, std::uint32_t stream) noexcept {
  // A request costs the same however many holes there are. The blocks of recorded programs leave fewer.
  constexpr Bounds kUsual{.runs = 64, .run_extents = 256, .extents = 2048};
  const ExtentTree& tree = view.part(part).bare_tree();
  Search search(view, bytes, alignment);
  if (const PoolExtent* rest = look_at_runs(tree, stream, kUsual, search)) {
    // Of the others one that is bare and fits: nearly always there is one behind all that was ever used.
    const std::size_t enough = bytes + alignment;
    if (rest->bytes < enough) rest = tree.next(rest, enough);
    if (rest != nullptr) search.consider(run_around(rest, stream, kUsual.run_extents));
    if (search.best().first == nullptr) look_at_runs(tree, stream, {}, search);  // addresses are short
  }
  return search.best();
}

PageWindow window_behind(const PoolExtent& extent, std::size_t bytes, std::uint32_t stream) noexcept {
  PageWindow window{.begin = extent.end(), .bytes = bytes, .missing = 0, .first = extent.next};
  std::size_t there = 0;
  for (const PoolExtent* e = window.first; there < bytes; e = e->next) {
    if (!is_usable(e, stream)) return {};
    if (e->state == ExtentState::bare) window.missing += e->bytes;
    there += e->bytes;
    ++window.extents;
  }
  return window;
}

// As much as the bound on all that is committed leaves, so that the next block finds part of what it needs,
// or all, and pieces are fewer and longer. But no more than a small part of the peak in all: what is free
// between blocks that share a piece cannot be taken from it, and a pool at its limit lives on that.
std::size_t plan_ahead(const PageView& view, const PageWindow& window) noexcept {
  if (!view.rules.pays_by_the_piece() || window.begin < view.split || window.missing == 0 || window.bytes >= kLeastAlone) return 0;
  const std::size_t allowed = saturating_scale(std::max(view.peak_live, view.live + window.bytes), view.rules.page_bound);
  const std::size_t wanted = view.committed + view.promised + window.missing;
  const std::size_t shared = view.peak_live / kAheadShare;
  if (wanted >= allowed || window.missing >= view.room || window.missing >= shared) return 0;
  return align_down(std::min({allowed - wanted, view.room - window.missing, shared - window.missing}), view.rules.page_bytes);
}

}  // namespace berth::internal::memory
