// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/namespace.h"
#include "berth/base/shape.h"

// Loops over two strided layouts of one shape. The order in which elements are copied does not matter, so the
// loop is normalized: axes of size 1 are dropped, one side decides the direction and the order of the others,
// and adjacent axes that are contiguous with each other on both sides are merged. A contiguous copy is then one
// row whatever its rank, also when both sides are permuted or reversed alike, and every other copy has the
// longest possible rows. Nothing here allocates. Any thread.
namespace berth::internal::base {

using AxisArray = std::array<std::int64_t, kMaxRank>;  // a number for each axis; the first `rank` are used

struct LoopAxis {
  std::int64_t size;
  std::int64_t source_stride;  // in elements
  std::int64_t target_stride;

  friend bool operator==(const LoopAxis&, const LoopAxis&) = default;
};

// The side whose memory the loop walks in ascending order: its strides are non-negative and descend from axis
// to axis. (A stride of 0 counts as the largest.)
enum class LoopOrder : unsigned char { source, target };

struct Loop {
  std::array<LoopAxis, kMaxRank> all;  // outermost first; entries past `rank` are unused
  std::size_t rank = 0;                // 0: a single element
  std::int64_t source_start = 0;       // offset of the loop's start from index 0, 0, …; in elements
  std::int64_t target_start = 0;

  std::span<const LoopAxis> axes() const noexcept { return {all.data(), rank}; }
  std::span<const LoopAxis> outer() const noexcept { return {all.data(), rank == 0 ? 0 : rank - 1}; }
  LoopAxis row() const noexcept { return rank == 0 ? LoopAxis{1, 1, 1} : all[rank - 1]; }

  // Whether the rows are contiguous on both sides.
  bool is_dense() const noexcept { return row().source_stride == 1 && row().target_stride == 1; }
  // Whether everything is contiguous on both sides.
  bool is_whole() const noexcept { return rank <= 1 && is_dense(); }
};

// REQUIRES: as many strides as dimensions, at most kMaxRank; no dimension of size 0; both layouts have a
// try_extent.
Loop make_loop(std::span<const std::int64_t> shape, std::span<const std::int64_t> source, std::span<const std::int64_t> target,
               LoopOrder order = LoopOrder::target) noexcept;
inline Loop make_loop(const Shape& shape, const Strides& source, const Strides& target, LoopOrder order = LoopOrder::target) noexcept {
  return make_loop(shape.span(), source.span(), target.span(), order);
}

// Calls visit(source offset, target offset) for each index of these axes, in row-major order. Offsets are in
// elements and start from those given.
template <class Visit>
void for_each_index(std::span<const LoopAxis> axes, std::int64_t source, std::int64_t target, Visit visit) {
  AxisArray index;
  for (std::size_t axis = 0; axis < axes.size(); ++axis) index[axis] = 0;
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
      source -= (a.size - 1) * a.source_stride;  // back to the axis's start; cannot overflow
      target -= (a.size - 1) * a.target_stride;
      index[--axis] = 0;
    }
    if (axis == 0) return;
  }
}

// The same for the first element of each row.
template <class Visit>
void for_each_row(const Loop& loop, Visit visit) {
  for_each_index(loop.outer(), loop.source_start, loop.target_start, visit);
}

// The same in pieces of at most `most` elements of a row: visit(source offset, target offset, count).
template <class Visit>
void for_each_chunk(const Loop& loop, std::size_t most, Visit visit) {
  const LoopAxis row = loop.row();
  const auto length = static_cast<std::size_t>(row.size);
  for_each_row(loop, [&](std::int64_t source, std::int64_t target) {
    for (std::size_t at = 0; at < length; at += most) {
      const auto done = static_cast<std::int64_t>(at);
      visit(source + done * row.source_stride, target + done * row.target_stride, length - at < most ? length - at : most);
    }
  });
}

}  // namespace berth::internal::base
