// SPDX-License-Identifier: Apache-2.0
#include "copy/host/walk.h"

#include "base/axes.h"

namespace berth::internal::copy {

namespace {

std::int64_t magnitude(std::int64_t stride) noexcept { return stride < 0 ? -stride : stride; }

}  // namespace

Walk walk_of(std::span<const std::int64_t> shape, std::span<const std::int64_t> source, std::span<const std::int64_t> target) noexcept {
  const Loop loop = make_loop(shape, source, target);
  if (loop.is_whole()) return Walk::whole;
  if (loop.is_dense()) return Walk::rows;
  // The target is densest along the row. If the source is densest along another axis, walking rows would be the
  // worst order.
  const std::int64_t along_row = magnitude(loop.row().source_stride);
  for (const LoopAxis& axis : loop.outer()) {
    if (axis.source_stride != 0 && magnitude(axis.source_stride) < along_row) return Walk::tiles;
  }
  return Walk::strided;
}

}  // namespace berth::internal::copy
