// SPDX-License-Identifier: Apache-2.0
#include "memory/space/page_window.h"

#include <algorithm>

#include "berth/base/checked.h"

namespace berth::internal::memory {

namespace {

constexpr std::size_t kMostRuns = 64;  // looked at for one block

bool is_usable(const PoolExtent* e, std::uint32_t stream) noexcept {
  return e != nullptr && (e->state == ExtentState::bare || (e->state == ExtentState::cached && (e->stream == 0 || e->stream == stream)));
}

// A maximal run of neighbours that a stream may use.
struct Run {
  const PoolExtent* first;
  const PoolExtent* last;
};

Run run_around(const PoolExtent* free, std::uint32_t stream) noexcept {
  Run run{free, free};
  while (is_usable(run.first->previous, stream)) run.first = run.first->previous;
  while (is_usable(run.last->next, stream)) run.last = run.last->next;
  return run;
}

// The window for one block that is best so far.
class Search {
 public:
  Search(const PageView& view, std::size_t bytes, std::size_t alignment) noexcept : view_(view), bytes_(bytes), alignment_(alignment) {}

  // A block that begins with an extent, as far as its alignment allows, and one that ends with it.
  void consider(const Run& run) noexcept {
    for (const PoolExtent* e = run.first; e != run.last->next; e = e->next) {
      const std::size_t low = round_up(view_.base + e->begin, alignment_) - view_.base;
      if (fits(low, bytes_, run.last->end())) consider(run, low);
      if (e->end() < run.first->begin + bytes_) continue;
      const std::size_t high = align_down(view_.base + e->end() - bytes_, std::max(alignment_, kPageGrain)) - view_.base;
      if (high >= run.first->begin && high < run.last->end()) consider(run, high);
    }
  }

  const PageWindow& best() const noexcept { return best_; }

 private:
  void consider(const Run& run, std::size_t begin) noexcept {
    const std::size_t page = view_.rules.page_bytes;
    PageWindow window{.begin = begin, .bytes = bytes_, .missing = 0};
    for (const PoolExtent* e = run.first; e != nullptr && e->begin < begin + bytes_; e = e->next) {
      if (e->end() <= begin) continue;
      if (window.first == nullptr) window.first = e;
      ++window.extents;
      if (e->state != ExtentState::bare) continue;
      window.missing += std::min(e->end(), round_up(begin + bytes_, page)) - std::max(e->begin, align_down(begin, page));
    }
    if (window.missing < best_.missing) best_ = window;
  }

  const PageView& view_;
  const std::size_t bytes_;
  const std::size_t alignment_;
  PageWindow best_;
};

}  // namespace

PageWindow find_window(const PageView& view, PagePart part, std::size_t bytes, std::size_t alignment, std::uint32_t stream) noexcept {
  const ExtentTree& tree = view.part(part).bare_tree();
  Search search(view, bytes, alignment);
  std::size_t looked_at = 0;
  for (const PoolExtent* bare = tree.first(1); bare != nullptr; bare = tree.next(bare, 1)) {
    // Past the bound only the long ones at the end of the range, which always fit, are of interest.
    const bool past = ++looked_at > kMostRuns;
    if (past && bare->bytes < bytes + alignment) continue;
    const Run run = run_around(bare, stream);
    search.consider(run);
    if (past && search.best().first != nullptr) break;
    // The run is done; continue behind it.
    for (const PoolExtent* e = bare; e != nullptr && e->begin <= run.last->begin; e = tree.next(e, 1)) bare = e;
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
  if (!view.rules.pays_by_the_piece() || window.begin < view.split || window.missing == 0) return 0;
  const auto allowed =
      static_cast<std::size_t>(view.rules.page_bound * static_cast<double>(std::max(view.peak_live, view.live + window.bytes)));
  const std::size_t wanted = view.committed + view.promised + window.missing;
  const std::size_t shared = view.peak_live / kPieceShare;
  if (wanted >= allowed || window.missing >= view.room || window.missing >= shared) return 0;
  return align_down(std::min({allowed - wanted, view.room - window.missing, shared - window.missing}), view.rules.page_bytes);
}

}  // namespace berth::internal::memory
