// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "berth/plan/plan.h"

// Plans for one order of the nodes: that of the graph when `order` is empty, else a topological order of all
// planned nodes, as in PlanTables.
namespace berth::internal::plan {

// REQUIRES: the graph is valid, and `order` is topological. Throws ArgumentError as `plan` does.
Plan plan_in_order(std::shared_ptr<const Graph> graph, const PlanOptions& options, const std::vector<NodeId>& order);

// The most bytes live at once on each device: no plan in this order is smaller. REQUIRES: the same, and
// `check_options` has passed.
std::vector<std::size_t> bounds_in_order(const Graph& graph, const PlanOptions& options, const std::vector<NodeId>& order);

NodeRange planned_nodes(const Graph& graph, const PlanOptions& options);

}  // namespace berth::internal::plan
