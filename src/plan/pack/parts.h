// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "plan/pack/packer.h"

// Cuts the buffers of one device where no buffer lives across: what is packed on one side has nothing to do with the other.
namespace berth::internal::plan {

struct CutPart {
  Part part;
  std::vector<std::uint32_t> indices;  // of the part's buffers among those that were given
};

// Buffers of no bytes are in no part. Times become ranks, so that only their order counts. Neither the numbers of buffers nor the direction of
// time matter: an instance that is relabelled, or turned around in time, has the same parts, with the same buffers in the same order. Those of other
// devices are left out.
std::vector<CutPart> cut_into_parts(const std::vector<PackBuffer>& buffers, std::uint32_t device = 0);

// A buffer of a part as it was given, in the nodes of the graph.
PackBuffer uncut(const Part& part, const PackBuffer& buffer);

}  // namespace berth::internal::plan
