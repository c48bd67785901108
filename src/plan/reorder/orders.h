// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "plan/reorder/model.h"

// Greedy topological orders of a whole graph, each in near-linear time and none of them good everywhere: the
// same heuristic that saves a third on one graph costs a multiple on another. They are starting points; the
// best of them is improved (improve.h).
namespace berth::internal::plan {

struct OrderRule {
  std::string_view name;
  std::string_view does;
  std::vector<UnitId> (*order)(const OrderModel& model);
};

std::span<const OrderRule> order_rules() noexcept;

}  // namespace berth::internal::plan
