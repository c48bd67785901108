// SPDX-License-Identifier: Apache-2.0
#include "copy/host/host_plan.h"

#include <algorithm>
#include <cstdlib>

#include "berth/base/checked.h"

namespace berth::internal::copy {

namespace {

// The axes in the order they are walked, outermost first.
struct LoopAxes {
  std::array<HostAxis, kMaxRank> axes;
  std::size_t count = 0;

  void insert_by_target(const HostAxis& axis) noexcept {
    std::size_t at = count++;
    for (; at > 0 && axes[at - 1].target_step < axis.target_step; --at) axes[at] = axes[at - 1];
    axes[at] = axis;
  }

  void merge_neighbours() noexcept {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const HostAxis inner = axes[i];
      if (kept > 0 && try_multiply(inner.size, inner.source_step) == axes[kept - 1].source_step &&
          try_multiply(inner.size, inner.target_step) == axes[kept - 1].target_step) {
        axes[kept - 1] = {axes[kept - 1].size * inner.size, inner.source_step, inner.target_step};
      } else {
        axes[kept++] = inner;
      }
    }
    count = kept;
  }

  HostAxis take(std::size_t at) noexcept {
    const HostAxis taken = axes[at];
    std::copy(axes.begin() + static_cast<std::ptrdiff_t>(at) + 1, axes.begin() + static_cast<std::ptrdiff_t>(count),
              axes.begin() + static_cast<std::ptrdiff_t>(at));
    --count;
    return taken;
  }
};

// The axis with the smallest source step. A step of 0 repeats an element and does not count.
std::size_t densest_of_source(const LoopAxes& list) noexcept {
  std::size_t best = list.count - 1;
  for (std::size_t i = 0; i < list.count; ++i) {
    const std::int64_t step = std::abs(list.axes[i].source_step);
    if (step != 0 && step < std::abs(list.axes[best].source_step)) best = i;
  }
  return best;
}

}  // namespace

HostPlan plan_on_host(std::span<const std::int64_t> shape, std::span<const std::int64_t> source,
                      std::span<const std::int64_t> target) noexcept {
  HostPlan plan;
  LoopAxes list;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    HostAxis axis{shape[i], source[i], target[i]};
    if (axis.size == 1) continue;
    if (axis.target_step < 0) {  // walk it from the other end
      plan.source_offset += (axis.size - 1) * axis.source_step;
      plan.target_offset += (axis.size - 1) * axis.target_step;
      axis.source_step = -axis.source_step;
      axis.target_step = -axis.target_step;
    }
    list.insert_by_target(axis);
  }
  list.merge_neighbours();
  if (list.count != 0) {
    const std::size_t densest = densest_of_source(list);
    plan.row = list.axes[list.count - 1];
    if (densest + 1 != list.count) {
      plan.kind = HostPlan::Kind::tiles;
      plan.column = list.take(densest);
    }
    list.take(list.count - 1);
  }
  plan.rank = list.count;
  for (std::size_t i = 0; i < list.count; ++i) {
    plan.axes[i] = list.axes[i];
    plan.planes *= list.axes[i].size;
  }
  return plan;
}

PlaneWalk::PlaneWalk(const HostPlan& plan, std::int64_t plane) noexcept
    : plan_(plan), source_(plan.source_offset), target_(plan.target_offset) {
  for (std::size_t i = plan.rank; i > 0; --i) {
    const HostAxis& axis = plan.axes[i - 1];
    index_[i - 1] = plane % axis.size;
    plane /= axis.size;
    source_ += index_[i - 1] * axis.source_step;
    target_ += index_[i - 1] * axis.target_step;
  }
}

void PlaneWalk::next() noexcept {
  for (std::size_t i = plan_.rank; i > 0; --i) {
    const HostAxis& axis = plan_.axes[i - 1];
    source_ += axis.source_step;
    target_ += axis.target_step;
    if (++index_[i - 1] < axis.size) return;
    source_ -= axis.size * axis.source_step;  // back to the start of the axis
    target_ -= axis.size * axis.target_step;
    index_[i - 1] = 0;
  }
}

}  // namespace berth::internal::copy
