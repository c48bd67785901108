// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "memory/space/page_view.h"
#include "memory/space/page_window.h"

// Which free piece is cut in two before a block is placed in it: given back to the device, and made anew as two pieces
// that meet at the block's end, or its begin. Otherwise the block would pin what is left of the piece. That takes as
// long as three calls on pieces, so it is done where it matters. Pure.
namespace berth::internal::memory {

struct PieceCut {
  PageSpan piece;
  std::size_t at = 0;       // at a page
  std::size_t spared = 0;   // bytes that would be pinned without it
  std::uint64_t point = 0;  // of the free whose work may still touch it, on the request's stream; 0: none may

  PageSpan front() const noexcept { return {piece.begin, at}; }
  PageSpan back() const noexcept { return {at, piece.end}; }
};

// For a block that is about to be placed in a free extent, or in a window. Nothing: it pins no piece, or that does not
// matter (PageAccounts::cuts_matter).
std::optional<PieceCut> plan_cut(const PageView& view, const PoolExtent& extent, const PageSpan& block) noexcept;
std::optional<PieceCut> plan_cut(const PageView& view, const PageWindow& window) noexcept;

}  // namespace berth::internal::memory
