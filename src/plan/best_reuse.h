// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "plan/lives.h"
#include "plan/reuse.h"

namespace berth::internal::plan {

// The most bytes live at once on each device.
std::vector<std::size_t> bounds_of(const SharingResult& shared, std::size_t devices);

// Sharing can cost memory: a view keeps all of its input alive, a joined output exists from its first input on, and an output in place of a
// larger input stays as large. So what can do so is also left out, and the way with the least bound is taken.
SharingResult share_best(const Graph& graph, NodeRange nodes, const std::vector<Life>& lives, bool inplace,
                         const std::vector<NodeId>& order);

}  // namespace berth::internal::plan
