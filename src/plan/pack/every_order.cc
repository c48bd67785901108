// SPDX-License-Identifier: Apache-2.0
#include "plan/pack/every_order.h"

#include <algorithm>
#include <numeric>

#include "plan/pack/fit.h"

namespace berth::internal::plan {

PackAnswer pack_every_order(const PackTask& task) {
  constexpr std::size_t kMost = 7;  // 5,040 orders
  const Part& part = task.part;
  if (part.buffers.size() > kMost) return {PackEnd::too_many};
  PackAnswer best{PackEnd::above};
  std::size_t below = task.below;
  std::vector<std::uint32_t> order(part.buffers.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto movable = order.begin() + static_cast<std::ptrdiff_t>(part.fixed);
  do {
    PackAnswer answer = pack_in_order({part, below, task.patience}, order, Fit::first);
    if (answer.end != PackEnd::done) continue;
    below = answer.packing.peak_bytes;
    best = std::move(answer);
  } while (below > part.lower_bound_bytes && std::next_permutation(movable, order.end()));
  return best;
}

}  // namespace berth::internal::plan
