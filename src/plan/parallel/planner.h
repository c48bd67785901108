// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "berth/plan/plan.h"

// Plans for nodes that may run at once.
namespace berth::internal::plan::parallel {

// Above so many nodes a bit for each pair of them would take too much memory (some 150 MB here), and what is
// concurrent is known by stages only.
inline constexpr NodeId kMostNodesOfPairs = 50'000;

// Buffers share bytes where the graph's own edges order their uses, and where up to options.most_edges edges that the
// plan adds do. REQUIRES: options.parallel > 1; otherwise as `plan_in_order`.
Plan plan_parallel(const std::shared_ptr<const Graph>& graph, const PlanOptions& options);

}  // namespace berth::internal::plan::parallel
