// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "berth/plan/graph.h"
#include "plan/lives.h"
#include "plan/reuse.h"

// Checks that keep sums of sizes within the address space.
namespace berth::internal::plan {

// Fixed offsets are multiples of their alignments. Throws ArgumentError: invalid_alignment, size_overflow.
void check_fixed(const Graph& graph, const std::vector<Life>& lives);

// No offset that a packer computes can overflow: the sum of all sizes, alignments and fixed offsets is bounded.
// Throws ArgumentError(size_overflow).
void check_sizes(const Graph& graph, const ReuseResult& reuse);

}  // namespace berth::internal::plan
