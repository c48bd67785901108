// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/pack/packer.h"

// Packs again and again, each time a little differently, between the strategies that pack once and the exact search. Both stop when the packing
// is low enough, when the time is over, or after a number of buffers placed that takes less than a second.
namespace berth::internal::plan {

// In an order, each into its lowest gap; then everything that ends above what is aimed at moves half way to the front, and again.
PackAnswer pack_promoting(const PackTask& task);

// Always the buffer that comes to lie lowest; ties by load and area, with noise on their ranks. With a deadline it goes on until then, unless
// the exact search comes next.
PackAnswer pack_lowest_with_noise(const PackTask& task);

}  // namespace berth::internal::plan
