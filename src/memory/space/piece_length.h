// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "memory/space/page_view.h"

// How long the pieces of a commit are, on a device where their number is what costs. Pure.
//
// A piece moves, and returns to the device, only when all of it is free: one live block *pins* the rest of it. So a
// long block gets pieces of its own, from its first whole page to its last, which fall free together with it; pages
// that it shares with its neighbours are pieces by themselves:
//
//     blocks    |  a  |        long block            |  b ...
//     pages     |   |   |   |   |   |   |   |   |   |   |
//     pieces    |   |           A           |   B   |   |
//
// Shorter blocks have pieces in common. There a piece may be long as well: it costs as much as a page, and most of
// what a program allocates first it frees last.
namespace berth::internal::memory {

inline constexpr std::size_t kSharedPiece = std::size_t{32} << 20;  // the longest that blocks have in common
inline constexpr std::size_t kLeastAlone = kSharedPiece;            // of a block that gets pieces of its own

// The length of the piece that begins with a span without memory, under or behind a block. REQUIRES: the span begins
// at a page.
std::size_t piece_length(const PageView& view, const PageSpan& missing, const PageSpan& block) noexcept;

}  // namespace berth::internal::memory
