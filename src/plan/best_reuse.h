// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "plan/kept.h"
#include "plan/lives.h"
#include "plan/reuse.h"

namespace berth::internal::plan {

// The most bytes live at once on each device.
std::vector<std::size_t> bounds_of(const ReuseResult& reuse, std::size_t devices);

// Reuse by options can cost memory: a view keeps its whole input alive, a joined output is live from its first
// input on, and an output in place of a larger input stays as large. So every combination of these rules is
// tried, and the one with the least lower bound is taken.
ReuseResult find_best_reuse(const Graph& graph, NodeRange nodes, const std::vector<Life>& lives, bool inplace,
                            const std::vector<NodeId>& order, std::span<const KeptRange> kept = {});

}  // namespace berth::internal::plan
