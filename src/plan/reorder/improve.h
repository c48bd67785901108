// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "plan/pack/packer.h"
#include "plan/reorder/model.h"

namespace berth::internal::plan {

// Lowers an order where it needs the most, for as long as that helps: the stretch around it is searched exactly if it is small, else ever
// longer windows of it. The answer never needs more than what came in, and is the same on every machine unless patience ends.
struct ImprovedOrder {
  std::vector<UnitId> order;
  std::size_t peak_bytes = 0;
  bool is_least = false;  // no order needs less, as the model counts
};
ImprovedOrder improve_order(const OrderModel& model, std::vector<UnitId> order, const Patience& patience);

// What some unit needs in every order, what it reads and makes; or what survives in the end.
std::size_t least_need(const OrderModel& model);

}  // namespace berth::internal::plan
