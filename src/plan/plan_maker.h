// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "berth/plan/plan.h"

namespace berth {

// Makes plans that also say how they were found.
struct PlanMaker {
  static Plan make(std::shared_ptr<const Graph> graph, PlanTables tables, const std::vector<PlanAttempt>& attempts, double time_ms);

  // The same plan, with the orders that were tried, and the time of all of it.
  static Plan with_orders(Plan plan, std::vector<OrderAttempt> orders, double time_ms);
};

}  // namespace berth
