// SPDX-License-Identifier: Apache-2.0
#include "memory/space/page_trim.h"

#include <algorithm>
#include <utility>

#include "berth/base/checked.h"

namespace berth::internal::memory {

namespace {

bool enter_slabs(Trim& trim) noexcept {
  if (trim.part == PagePart::slabs) return false;
  trim.part = PagePart::slabs;
  trim.below = SIZE_MAX;
  return true;
}

// The tail of an extent, as long as the excess.
PageSpan trim_pages(const PageView& view, const PoolExtent& extent, Trim& trim) noexcept {
  --trim.most_spans;
  const std::size_t end = align_down(extent.end(), trim.grain);
  const std::size_t whole = end - std::min(end, round_up(extent.begin, trim.grain));
  const PageSpan span{end - std::min(round_up(view.cached() - trim.keep, trim.grain), whole), end};
  // What is left of it comes next, if it has a whole page.
  trim.below = span.bytes() < whole ? span.begin : extent.begin;
  return span;
}

PageSpan trim_piece(const PageView& view, const PoolExtent& extent, Trim& trim) noexcept {
  const PageSpan piece = view.borders->last_within(extent.begin, std::min(extent.end(), trim.below));
  trim.below = piece.empty() ? extent.begin : piece.begin;
  trim.most_spans -= piece.empty() ? 0 : 1;
  return piece;
}

PageSpan pages_around(const PageView& view, const PageSpan& range) noexcept {
  const PoolExtent* const e = view.part_of(range.begin).clean_tree().covering(range.begin);
  if (e == nullptr) return {};  // in use after all, or a stream may still use it
  const std::size_t unit = view.rules.unit_bytes;
  const std::size_t page = view.rules.page_bytes;
  const std::size_t from = round_up(std::max(e->begin, align_down(range.begin, page)), unit);
  const std::size_t to = align_down(std::min(e->end(), round_up(range.end, page)), unit);
  return from < to ? PageSpan{from, to} : PageSpan{};
}

}  // namespace

PageSpan next_to_trim(const PageView& view, Trim& trim) noexcept {
  const bool in_pieces = view.rules.in_pieces();
  const bool in_pages = !in_pieces && trim.grain == view.rules.page_bytes;
  const std::size_t least = in_pieces ? view.rules.page_bytes : trim.grain;
  for (; view.cached() > trim.keep && trim.most_spans > 0 && trim.most_looks > 0; --trim.most_looks) {
    const ExtentTree& tree = view.part(trim.part).clean_tree();
    const PoolExtent* const e = in_pages ? tree.last_whole_below(trim.below) : tree.last_below(trim.below, least);
    if (e == nullptr) {
      if (!enter_slabs(trim)) break;
      continue;
    }
    const PageSpan span = in_pieces ? trim_piece(view, *e, trim) : trim_pages(view, *e, trim);
    if (!span.empty()) return span;
  }
  return {};
}

bool goes_on_after_refusal(const PageView& view, Trim& trim) noexcept { return view.rules.in_pieces() && enter_slabs(trim); }

PageSpan next_to_trim_around(const PageView& view, PageSpan& rest) noexcept {
  if (!view.rules.in_pieces()) return rest.empty() ? PageSpan{} : pages_around(view, std::exchange(rest, PageSpan{}));
  while (rest.begin < rest.end) {
    const PoolExtent* const e = view.part_of(rest.begin).clean_tree().covering(rest.begin);
    if (e == nullptr) break;  // as above
    const PageSpan piece = view.borders->around(rest.begin);
    rest.begin = piece.end;
    if (e->begin <= piece.begin && piece.end <= e->end()) return piece;
  }
  return {};
}

}  // namespace berth::internal::memory
