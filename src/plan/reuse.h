// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "berth/plan/graph.h"
#include "berth/plan/plan.h"
#include "plan/kept.h"
#include "plan/lives.h"
#include "plan/problem.h"

// The second step of planning: which values reuse the bytes of others by options. Values that use the same
// bytes form one buffer, whose lifetime covers all of theirs and which is as large as the largest; packers see
// only buffers.
namespace berth::internal::plan {

// Which options to take where they are safe.
struct ReuseRules {
  bool inplace = true;  // any option at all
  bool views = true;    // outputs as ranges of an input, whose lifetime then covers theirs
  bool joins = true;    // inputs as ranges of an output, whose lifetime then starts with the first of them
  bool smaller = true;  // an output in place of a larger input, which then stays as large

  // Of a parallel plan: whether a node surely ends before another begins. An input is overwritten only where this
  // says so of all that used its buffer before. Empty: nodes run in order.
  std::function<bool(NodeId, NodeId)> precedes = {};
};

struct ValueInBuffer {
  std::size_t offset = 0;  // in the buffer
  ValueId with = kNoValue;
  std::uint32_t buffer = kNoBuffer;
  Reuse reuse = Reuse::none;
};

// The preferred offset of a buffer.
struct OffsetPreference {
  std::uint32_t buffer;
  std::size_t offset;
};

struct ReuseResult {
  std::vector<ValueInBuffer> values;  // one for each value
  std::vector<PackBuffer> buffers;
  std::vector<OffsetPreference> preferences;       // by buffer
  ReuseRules took = {false, false, false, false};  // the kinds of options that were taken
};

// Takes every option that the rules allow and that is safe. `order` is the execution order, as for the
// lifetimes. What is kept is in buffers of its own, fixed where it lies.
ReuseResult find_reuse(const Graph& graph, NodeRange nodes, const std::vector<Life>& lives, const ReuseRules& rules,
                       std::span<const NodeId> order = {}, std::span<const KeptRange> kept = {});

}  // namespace berth::internal::plan
