// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/pack/packer.h"

// Lets buffers fall in every order there is. Some order gives a packing that is as low as can be, so this is exact; it is for parts of at
// most seven buffers.
namespace berth::internal::plan {

PackAnswer pack_every_order(const PackTask& task);

}  // namespace berth::internal::plan
