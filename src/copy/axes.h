// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "berth/base/shape.h"

// Loops over strided layouts. Axes of size 1 vanish, and neighbours that both sides walk as one are merged, so that a contiguous copy is
// one row whatever its rank, and every other copy has as long rows as it can.
namespace berth {

struct LoopAxis {
  std::int64_t size;
  std::int64_t source_stride;  // in elements
  std::int64_t target_stride;
};

// A loop over all elements of two layouts of one shape, as rows: runs along the innermost axis.
struct Loop {
  std::vector<LoopAxis> outer;  // outermost first
  LoopAxis row{1, 1, 1};

  bool is_dense() const noexcept { return row.source_stride == 1 && row.target_stride == 1; }
};

// REQUIRES: equal ranks, no dimension of size 0.
Loop make_loop(const Shape& shape, const Strides& source, const Strides& target);

// Calls visit(source offset, target offset) for the first element of each row, in row-major order. Offsets are in elements.
template <class Visit>
void for_each_row(const Loop& loop, Visit visit) {
  const std::span<const LoopAxis> axes = loop.outer;
  std::vector<std::int64_t> index(axes.size(), 0);
  std::int64_t source = 0;
  std::int64_t target = 0;
  while (true) {
    visit(source, target);
    std::size_t axis = axes.size();
    while (axis > 0) {
      const LoopAxis& a = axes[axis - 1];
      if (++index[axis - 1] < a.size) {
        source += a.source_stride;
        target += a.target_stride;
        break;
      }
      source -= (a.size - 1) * a.source_stride;  // back to the start of the axis; in bounds, so it fits
      target -= (a.size - 1) * a.target_stride;
      index[--axis] = 0;
    }
    if (axis == 0) return;
  }
}

// The same in pieces of at most `most` elements: visit(source offset, target offset, count).
template <class Visit>
void for_each_chunk(const Loop& loop, std::size_t most, Visit visit) {
  const auto length = static_cast<std::size_t>(loop.row.size);
  for_each_row(loop, [&](std::int64_t source, std::int64_t target) {
    for (std::size_t at = 0; at < length; at += most) {
      const auto done = static_cast<std::int64_t>(at);
      visit(source + done * loop.row.source_stride, target + done * loop.row.target_stride, length - at < most ? length - at : most);
    }
  });
}

}  // namespace berth
