// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "berth/plan/plan.h"
#include "plan/lives.h"

namespace berth::internal::plan {

// Makes plans that also say how they were found.
struct PlanMaker {
  // `lives` are those of the tables' nodes in their order.
  static Plan make(std::shared_ptr<const Graph> graph, PlanTables tables, std::vector<plan::Life> lives,
                   const std::vector<PlanAttempt>& attempts, double time_ms);

  // What a plan keeps of the lives.
  static std::vector<Plan::Use> find_uses(const Graph& graph, NodeRange nodes, const std::vector<plan::Life>& lives);

  // The same plan, with the orders that were tried.
  static Plan with_orders(Plan plan, std::vector<OrderAttempt> orders);

  // The same plan, with the time of all of it: checking the graph, and judging the plan, too.
  static Plan with_time(Plan plan, double time_ms);
};

}  // namespace berth::internal::plan
