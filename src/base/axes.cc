// SPDX-License-Identifier: Apache-2.0
#include "base/axes.h"

#include "berth/base/checked.h"

namespace berth::internal::base {

namespace {

// The stride that decides an axis's position in the loop. A stride of 0 (broadcast) counts as the largest: such
// an axis is best outermost.
std::int64_t distance(const LoopAxis& axis, LoopOrder order) noexcept {
  const std::int64_t stride = order == LoopOrder::source ? axis.source_stride : axis.target_stride;
  return stride == 0 ? INT64_MAX : stride;
}

void turn_around(LoopAxis& axis, Loop& loop) noexcept {
  loop.source_start += (axis.size - 1) * axis.source_stride;
  loop.target_start += (axis.size - 1) * axis.target_stride;
  axis.source_stride = -axis.source_stride;
  axis.target_stride = -axis.target_stride;
}

// Inserts an axis by descending distance; the insertion is stable.
void insert(const LoopAxis& axis, Loop& loop, LoopOrder order) noexcept {
  std::size_t at = loop.rank++;
  for (; at > 0 && distance(loop.all[at - 1], order) < distance(axis, order); --at) loop.all[at] = loop.all[at - 1];
  loop.all[at] = axis;
}

void merge(Loop& loop) noexcept {
  std::size_t kept = 0;
  for (std::size_t i = 1; i < loop.rank; ++i) {
    LoopAxis& outer = loop.all[kept];
    const LoopAxis inner = loop.all[i];
    const bool as_one = try_multiply(inner.size, inner.source_stride) == outer.source_stride &&
                        try_multiply(inner.size, inner.target_stride) == outer.target_stride;
    if (as_one)
      outer = {outer.size * inner.size, inner.source_stride, inner.target_stride};
    else
      loop.all[++kept] = inner;
  }
  if (loop.rank != 0) loop.rank = kept + 1;
}

}  // namespace

Loop make_loop(std::span<const std::int64_t> shape, std::span<const std::int64_t> source, std::span<const std::int64_t> target,
               LoopOrder order) noexcept {
  Loop loop;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    LoopAxis axis{shape[i], source[i], target[i]};
    if (distance(axis, order) < 0) turn_around(axis, loop);
    insert(axis, loop, order);
  }
  merge(loop);
  return loop;
}

}  // namespace berth::internal::base
