// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "plan/pack/packer.h"

// Cuts the timeline of one device where no lifetime crosses: the parts are packed independently.
namespace berth::internal::plan {

struct CutPart {
  Part part;
  std::vector<std::uint32_t> indices;  // of the part's buffers in the input
};

// Empty buffers and buffers of other devices are in no part. Times become ranks, so that only their order
// counts. The result is canonical: an instance whose buffers are renumbered, or whose time is reversed, has the
// same parts, with the same buffers in the same order.
std::vector<CutPart> cut_into_parts(const std::vector<PackBuffer>& buffers, std::uint32_t device = 0);

// The inverse for one buffer: its lifetime in nodes of the graph.
PackBuffer uncut(const Part& part, const PackBuffer& buffer);

}  // namespace berth::internal::plan
