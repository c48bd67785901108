// SPDX-License-Identifier: Apache-2.0
#include "memory/space/piece_cut.h"

#include <algorithm>

#include "berth/base/checked.h"

namespace berth::internal::memory {

namespace {

std::optional<PieceCut> cut_at(const PageView& view, const PoolExtent& extent, const PageSpan& block, std::size_t inside,
                               std::size_t at) noexcept {
  const PageSpan piece = view.borders->around(inside);
  if (piece.begin < extent.begin || piece.end > extent.end() || at <= piece.begin || at >= piece.end) return std::nullopt;
  const std::size_t used = std::min(piece.end, block.end) - std::max(piece.begin, block.begin);
  return PieceCut{piece, at, piece.bytes() - used};
}

}  // namespace

std::optional<PieceCut> plan_cut(const PageView& view, const PoolExtent& extent, const PageSpan& block) noexcept {
  if (!view.cuts_matter || !view.rules.pays_by_the_piece() || view.rules.fixed_pages || extent.stream != 0) return std::nullopt;
  const std::size_t page = view.rules.page_bytes;
  if (const auto cut = cut_at(view, extent, block, block.end - 1, round_up(block.end, page))) return cut;
  return cut_at(view, extent, block, block.begin, align_down(block.begin, page));
}

}  // namespace berth::internal::memory
