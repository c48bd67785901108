// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/pack/packer.h"

// First fit in every permutation of the buffers. Some permutation gives an optimal packing, so this is exact;
// it is for parts of at most seven buffers.
namespace berth::internal::plan {

PackAnswer pack_every_order(const PackTask& task);

}  // namespace berth::internal::plan
