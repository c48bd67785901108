// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "berth/plan/graph.h"
#include "berth/plan/plan.h"
#include "plan/lives.h"
#include "plan/problem.h"

// The second step of planning: which values share bytes. What shares them is one buffer, which lives as long as all of its values and is as
// large as the largest; packers see only buffers.
namespace berth::internal::plan {

// Which options to take where they are safe.
struct SharingRules {
  bool inplace = true;  // any at all
  bool views = true;    // outputs as ranges of an input, which then lives as long as they do
  bool joins = true;    // inputs as ranges of an output, which then lives from the first of them on
  bool smaller = true;  // an output in place of a larger input, which then stays as large
};

struct SharedValue {
  std::size_t offset = 0;  // in the buffer
  ValueId with = kNoValue;
  std::uint32_t buffer = kNoBuffer;
  Sharing sharing = Sharing::none;
};

// Where a buffer would rather lie.
struct Wish {
  std::uint32_t buffer;
  std::size_t offset;
};

struct SharingResult {
  std::vector<SharedValue> values;  // one for each value
  std::vector<PackBuffer> buffers;
  std::vector<Wish> wishes;                          // by buffer
  SharingRules took = {false, false, false, false};  // what was taken
};

// `order` is how the nodes of the range run, as for the lives.
SharingResult share(const Graph& graph, NodeRange nodes, const std::vector<Life>& lives, const SharingRules& rules,
                    std::span<const NodeId> order = {});

}  // namespace berth::internal::plan
