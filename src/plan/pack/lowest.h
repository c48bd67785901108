// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/pack/orders.h"
#include "plan/pack/packer.h"

// Drops buffers onto the packed ones: always the one with the lowest resulting offset, ties by an order. Fills
// no gap, and leaves few.
namespace berth::internal::plan {

PackAnswer pack_lowest(const PackTask& task, Order ties);
// Ties go to the first in this order.
PackAnswer pack_lowest(const PackTask& task, const std::vector<std::uint32_t>& ties);

}  // namespace berth::internal::plan
