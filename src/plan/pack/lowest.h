// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/pack/orders.h"
#include "plan/pack/packer.h"

// Lets every buffer fall onto those that are placed, always the one that comes to lie lowest, and among these the first in an order. Fills no
// gap, and leaves few.
namespace berth::internal::plan {

PackAnswer pack_lowest(const PackTask& task, Order ties);
PackAnswer pack_lowest(const PackTask& task, const std::vector<std::uint32_t>& ties);  // what comes first there

}  // namespace berth::internal::plan
