// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "berth/plan/plan.h"
#include "plan/lives.h"

namespace berth::internal::plan {

// Makes plans with a record of how they were found. A friend of Plan, for the planner.
struct PlanMaker {
  // `lives` are the lifetimes of the tables' nodes in their order.
  static Plan make(std::shared_ptr<const Graph> graph, PlanTables tables, std::vector<plan::Life> lives,
                   const std::vector<PlanAttempt>& attempts, double time_ms);

  // The part of the lifetimes that a plan keeps.
  static std::vector<Plan::Use> find_uses(const Graph& graph, NodeRange nodes, const std::vector<plan::Life>& lives);

  // The same plan, with the orders that were tried.
  static Plan with_orders(Plan plan, std::vector<OrderAttempt> orders);

  // The same plan, with what edges would buy.
  static Plan with_trades(Plan plan, std::vector<EdgeTrade> trades);

  // The same plan, with the strategies that were tried.
  static Plan with_attempts(Plan plan, std::vector<PlanAttempt> attempts);

  // The same plan, with the total time: validation of the graph and verification of the plan included.
  static Plan with_time(Plan plan, double time_ms);
};

}  // namespace berth::internal::plan
