// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/pack/packer.h"

// Local search, between the strategies that pack once and the exact search. Both stop when the packing is low
// enough, when the time is over, or after a number of packed buffers that takes less than a second.
namespace berth::internal::plan {

// First fit in an order; then every buffer that ends above the target moves half way to the front, and again.
PackAnswer pack_promoting(const PackTask& task);

// Repeats the `lowest` heuristic with ties by load and area, and noise on their ranks. With a deadline it goes
// on until then, unless the exact search comes next.
PackAnswer pack_lowest_with_noise(const PackTask& task);

}  // namespace berth::internal::plan
