// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/axes.h"
#include "base/namespace.h"

// Cuts a loop into pieces: boxes of its axes, in order, each of at most a given number of elements. On a side
// that is dense in the loop's order each piece is contiguous. Example: axes 6 × 5 × 4 in pieces of at most 10
// elements take two rows of 4 at a time, which makes 6 × 3 pieces of 8, 8 and 4 elements. Any thread.
namespace berth::internal::base {

struct Cut {
  std::size_t axis = 0;      // the axis that is cut; a piece has one index of the outer axes, all of the inner
  std::int64_t length = 1;   // of a piece along that axis; the last piece may be shorter
  std::size_t elements = 1;  // of a piece
  std::size_t pieces = 1;
};

// REQUIRES: most > 0.
inline Cut cut(const Loop& loop, std::size_t most) noexcept {
  Cut made;
  made.axis = loop.rank;
  while (made.axis > 0) {
    const auto size = static_cast<std::size_t>(loop.all[--made.axis].size);
    const std::size_t length = std::min(size, most / made.elements);
    made.length = static_cast<std::int64_t>(length);
    made.pieces = size / length + (size % length != 0 ? 1 : 0);
    made.elements *= length;
    if (length < size) break;
  }
  for (std::size_t axis = 0; axis < made.axis; ++axis) made.pieces *= static_cast<std::size_t>(loop.all[axis].size);
  return made;
}

// The piece of a given number. REQUIRES: number < by.pieces.
inline Loop piece_at(const Loop& loop, const Cut& by, std::size_t number) noexcept {
  Loop piece;
  piece.rank = loop.rank - by.axis;
  std::ranges::copy(loop.axes().subspan(by.axis), piece.all.begin());
  piece.source_start = loop.source_start;
  piece.target_start = loop.target_start;
  if (loop.rank == 0) return piece;
  const auto step_along = [&](const LoopAxis& axis, std::int64_t at) {
    piece.source_start += at * axis.source_stride;
    piece.target_start += at * axis.target_stride;
  };
  const LoopAxis& along = loop.all[by.axis];
  const auto parts = static_cast<std::size_t>((along.size - 1) / by.length + 1);
  const std::int64_t at = static_cast<std::int64_t>(number % parts) * by.length;
  piece.all[0].size = std::min(by.length, along.size - at);
  step_along(along, at);
  number /= parts;
  for (std::size_t axis = by.axis; axis-- > 0; number /= static_cast<std::size_t>(loop.all[axis].size))
    step_along(loop.all[axis], static_cast<std::int64_t>(number % static_cast<std::size_t>(loop.all[axis].size)));
  return piece;
}

// Calls visit(piece) for each piece, in order; a piece is a loop over its elements.
template <class Visit>
void for_each_piece(const Loop& loop, const Cut& by, Visit visit) {
  Loop piece;
  piece.rank = loop.rank - by.axis;
  std::ranges::copy(loop.axes().subspan(by.axis), piece.all.begin());
  const LoopAxis along = loop.rank == 0 ? LoopAxis{1, 0, 0} : loop.all[by.axis];
  for_each_index(loop.axes().first(by.axis), loop.source_start, loop.target_start, [&](std::int64_t source, std::int64_t target) {
    for (std::int64_t at = 0; at < along.size; at += by.length) {
      piece.all[0].size = std::min(by.length, along.size - at);
      piece.source_start = source + at * along.source_stride;
      piece.target_start = target + at * along.target_stride;
      visit(static_cast<const Loop&>(piece));
    }
  });
}

}  // namespace berth::internal::base
