// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "berth/plan/plan.h"
#include "plan/reuse.h"

// Where the lower bound of each device is to be seen.
namespace berth::internal::plan {

// One for each device: the first step at which as many bytes are live as ever, or at which something fixed ends higher than that. Linear in buffers and
// steps.
std::vector<BoundProof> find_bound_proofs(const std::vector<PackBuffer>& buffers, std::size_t devices);

}  // namespace berth::internal::plan
