// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "berth/plan/plan.h"
#include "plan/reuse.h"

// Certificates of the lower bounds, which the verifier recomputes.
namespace berth::internal::plan {

// One for each device: the first step with the most live bytes, or one at which a fixed buffer ends higher than
// that. Linear in buffers and steps.
std::vector<BoundProof> find_bound_proofs(const std::vector<PackBuffer>& buffers, std::size_t devices);

}  // namespace berth::internal::plan
