// SPDX-License-Identifier: Apache-2.0
#include "memory/space/page_source.h"

#include <algorithm>
#include <functional>

#include "berth/base/checked.h"
#include "berth/base/units.h"

namespace berth::internal::memory {

namespace {

constexpr std::size_t kLeastEdge = 256_KiB;   // shorter edges are not worth a mapping of their own
constexpr std::size_t kMostSources = 64;      // free spans looked at in each part, for an edge
constexpr std::size_t kMostCandidates = 256;  // pieces looked at, for the one that fits best

PageSpan find_pages(const PageView& view, const TakenSpans& taken, const SourceQuery& query) noexcept {
  const std::size_t unit = query.edges ? view.rules.unit_bytes : view.rules.page_bytes;
  const std::size_t wanted = align_down(query.most, unit);
  const std::size_t least = query.edges ? std::min(kLeastEdge, wanted) : unit;
  if (wanted == 0) return {};
  for (const PagePart part : {PagePart::large, PagePart::slabs}) {
    FreeSpans free(view.part(part).tree(query.stream), taken, least, query.edges ? FreeSpans::Of::all : FreeSpans::Of::whole_pages);
    for (std::size_t looked_at = 0; !query.edges || looked_at < kMostSources; ++looked_at) {
      const PageSpan span = free.next();
      if (span.empty()) break;
      const std::size_t from = round_up(span.begin, unit);
      const std::size_t to = align_down(span.end, unit);
      if (to > from && to - from >= least) return {to - std::min(to - from, wanted), to};
    }
  }
  return {};
}

// Best fit among whole free pieces.
class PieceSearch {
 public:
  explicit PieceSearch(const PageView& view, const SourceQuery& query) noexcept : view_(view), query_(query) {}

  PageSpan run(const TakenSpans& taken, std::size_t most_candidates) noexcept {
    left_ = most_candidates;
    for (const PagePart part : {PagePart::large, PagePart::slabs}) {
      FreeSpans free(view_.part(part).tree(query_.stream), taken, view_.rules.page_bytes);
      while (left_ > 0) {
        const PageSpan span = free.next();
        if (span.empty()) break;
        look_at(span);
      }
    }
    return best_;
  }

 private:
  // Its pieces from the highest address down. A span counts as one more: those without a whole piece cost
  // time too.
  void look_at(const PageSpan& span) noexcept {
    for (std::size_t end = span.end; left_ > 0; --left_) {
      const PageSpan piece = view_.borders->last_within(span.begin, end);
      if (piece.empty()) break;
      end = piece.begin;
      if (!is_better(piece.bytes())) continue;
      best_ = piece;
      if (piece.bytes() != query_.most) continue;
      left_ = 0;
      return;
    }
    if (left_ > 0) --left_;
  }

  bool is_better(std::size_t bytes) const noexcept {
    if (bytes > query_.most && !query_.longer) return false;
    if (best_.empty()) return true;
    const std::size_t best = best_.bytes();
    return bytes >= query_.most ? best < query_.most || bytes < best : best < query_.most && bytes > best;
  }

  const PageView& view_;
  const SourceQuery& query_;
  PageSpan best_;
  std::size_t left_ = 0;  // to look at
};

}  // namespace

LongestSources::LongestSources(const PageView& view) noexcept : unit_(view.rules.unit_bytes) {
  std::array<PageSpan, 2 * TakenSpans::kMost> all;
  std::size_t count = 0;
  for (const PagePart part : {PagePart::large, PagePart::slabs}) {
    std::array<const PoolExtent*, TakenSpans::kMost> longest;
    const std::size_t found = view.part(part).clean_tree().longest(longest);
    for (const PoolExtent* const e : std::span(longest).first(found)) {
      const PageSpan whole{round_up(e->begin, unit_), align_down(e->end(), unit_)};
      if (whole.begin < whole.end) all[count++] = whole;
    }
  }
  std::ranges::sort(all.begin(), all.begin() + count, std::greater{}, &PageSpan::bytes);
  count_ = std::min(count, spans_.size());
  std::copy_n(all.begin(), count_, spans_.begin());
}

PageSpan LongestSources::next(std::size_t most) noexcept {
  const std::size_t wanted = align_down(most, unit_);
  if (next_ == count_ || wanted == 0) return {};
  const PageSpan span = spans_[next_++];
  return {span.end - std::min(span.bytes(), wanted), span.end};
}

PageSpan find_source(const PageView& view, const TakenSpans& taken, const SourceQuery& query) noexcept {
  if (view.rules.fixed_pages) return {};
  if (!view.rules.in_pieces()) return find_pages(view, taken, query);
  if (query.edges || query.most < view.rules.page_bytes) return {};
  const PageSpan found = PieceSearch(view, query).run(taken, kMostCandidates);
  return found.empty() && query.all ? PieceSearch(view, query).run(taken, SIZE_MAX) : found;
}

}  // namespace berth::internal::memory
