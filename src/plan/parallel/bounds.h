// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "berth/plan/plan.h"
#include "plan/lives.h"

namespace berth::internal::plan::parallel {

// Raises the lower bounds of a parallel plan to the heaviest antichains under its edges, with proofs. `before` has the
// direct predecessors of each node of the range. REQUIRES: the plan has locations.
void raise_bounds(const Graph& graph, const std::vector<Life>& lives, const std::vector<std::vector<NodeId>>& before, PlanTables& plan);

}  // namespace berth::internal::plan::parallel
