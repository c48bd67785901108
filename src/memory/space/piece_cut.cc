// SPDX-License-Identifier: Apache-2.0
#include "memory/space/piece_cut.h"

#include <algorithm>

#include "berth/base/checked.h"

namespace berth::internal::memory {

namespace {

std::optional<PieceCut> cut_at(const PageView& view, const PoolExtent& extent, const PageSpan& block, std::size_t inside,
                               std::size_t at) noexcept {
  if (inside < extent.begin || inside >= extent.end()) return std::nullopt;
  const PageSpan piece = view.borders->around(inside);
  if (piece.begin < extent.begin || piece.end > extent.end() || at <= piece.begin || at >= piece.end) return std::nullopt;
  const std::size_t used = std::min(piece.end, block.end) - std::max(piece.begin, block.begin);
  return PieceCut{piece, at, piece.bytes() - used, extent.stream == 0 ? 0 : extent.point};
}

}  // namespace

std::optional<PieceCut> plan_cut(const PageView& view, const PoolExtent& extent, const PageSpan& block) noexcept {
  if (!view.cuts_matter || !view.rules.pays_by_the_piece() || view.rules.fixed_pages) return std::nullopt;
  const std::size_t page = view.rules.page_bytes;
  if (const auto cut = cut_at(view, extent, block, block.end - 1, round_up(block.end, page))) return cut;
  return cut_at(view, extent, block, block.begin, align_down(block.begin, page));
}

// At its ends: what lies between them is covered.
std::optional<PieceCut> plan_cut(const PageView& view, const PageWindow& window) noexcept {
  const PageSpan block{window.begin, window.begin + window.bytes};
  const PoolExtent* last = window.first;
  while (last->end() < block.end) last = last->next;
  for (const PoolExtent* const end : {window.first, last}) {
    if (end->state != ExtentState::cached) continue;
    if (const auto cut = plan_cut(view, *end, block)) return cut;
  }
  return std::nullopt;
}

}  // namespace berth::internal::memory
