// SPDX-License-Identifier: Apache-2.0
#include "copy/axes.h"

#include <utility>

#include "berth/base/checked.h"

namespace berth {

Loop make_loop(const Shape& shape, const Strides& source, const Strides& target) {
  std::vector<LoopAxis> axes;
  for (std::size_t i = 0; i < shape.rank(); ++i) {
    if (shape[i] == 1) continue;
    const LoopAxis inner{shape[i], source[i], target[i]};
    if (!axes.empty()) {
      LoopAxis& outer = axes.back();
      const bool as_one = try_multiply(inner.size, inner.source_stride) == outer.source_stride &&
                          try_multiply(inner.size, inner.target_stride) == outer.target_stride;
      if (as_one) {
        outer = {outer.size * inner.size, inner.source_stride, inner.target_stride};
        continue;
      }
    }
    axes.push_back(inner);
  }
  Loop loop;
  if (!axes.empty()) {
    loop.row = axes.back();
    axes.pop_back();
  }
  loop.outer = std::move(axes);
  return loop;
}

}  // namespace berth
