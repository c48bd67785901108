// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "plan/pack/packer.h"
#include "plan/reorder/model.h"

namespace berth::internal::plan {

// Lowers the peak of an order for as long as that helps: the independent range around the peak is searched
// exactly if it is small, else ever longer windows of it. The result never needs more than the input, and is
// the same on every machine unless patience ends.
struct ImprovedOrder {
  std::vector<UnitId> order;
  std::size_t peak_bytes = 0;
  bool is_least = false;  // proved: no order needs less in the model
};
ImprovedOrder improve_order(const OrderModel& model, std::vector<UnitId> order, const Patience& patience);

// A lower bound for every order: what some unit reads and makes, or what survives in the end.
std::size_t least_need(const OrderModel& model);

}  // namespace berth::internal::plan
