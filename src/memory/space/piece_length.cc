// SPDX-License-Identifier: Apache-2.0
#include "memory/space/piece_length.h"

#include <algorithm>

#include "berth/base/checked.h"

namespace berth::internal::memory {

namespace {

// So a block of any length has few pieces, and the end of another that is placed there later pins little of it.
constexpr std::size_t kPiecesPerBlock = 32;

}  // namespace

std::size_t piece_length(const PageView& view, const PageSpan& missing, const PageSpan& block) noexcept {
  if (!view.rules.pays_by_the_piece()) return missing.bytes();
  const std::size_t page = view.rules.page_bytes;
  const std::size_t first = round_up(block.begin, page);
  const std::size_t last = align_down(block.end, page);
  if (last < first + kLeastAlone || missing.begin >= last) return std::min(missing.bytes(), std::max(kSharedPiece, page));
  if (missing.begin < first) return std::min(missing.bytes(), first - missing.begin);
  const std::size_t longest = std::max(kSharedPiece, align_down(block.bytes() / kPiecesPerBlock, page));
  return std::min({missing.bytes(), last - missing.begin, longest});
}

}  // namespace berth::internal::memory
