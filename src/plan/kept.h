// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "berth/plan/graph.h"
#include "berth/plan/plan.h"
#include "plan/lives.h"

// What a plan keeps of the plan that it continues: values of earlier nodes that live on, where they lie.
namespace berth::internal::plan {

struct KeptValue {
  ValueId value = kNoValue;
  ValueLocation location = {};  // in the earlier plan
};

// The values of the earlier plan that a node from `begin` on reads, and its outputs; by value.
std::vector<KeptValue> find_kept(const Graph& graph, NodeId begin, const PlanTables& earlier);

// Those that the tables of a plan say it keeps.
std::vector<KeptValue> kept_in(const PlanTables& tables);

// Bytes that are kept: a range of an arena, and the values that lie there. Values whose bytes overlap, such as a
// view and its whole, are in one range.
struct KeptRange {
  std::uint32_t device = 0;
  std::uint32_t slot = kNoSlot;  // in the earlier plan
  std::size_t begin = 0;
  std::size_t end = 0;
  std::vector<ValueId> values = {};       // by offset
  std::vector<std::size_t> offsets = {};  // of the values, from `begin`
};

// Disjoint; each empty value has a range of its own.
std::vector<KeptRange> kept_ranges(const Graph& graph, std::vector<KeptValue> kept);

// Makes kept values live from the start of the range to their last read in it, or to its end where they survive it,
// or where they all `stay`: a parallel plan that is read from a file has no last read. REQUIRES: the lifetimes of the range.
void add_kept(std::vector<Life>& lives, const Graph& graph, NodeRange nodes, const std::vector<KeptValue>& kept, bool stay);

// The lifetimes of a range as the options plan it, with what is kept of the plan before it.
std::vector<Life> find_lives(const Graph& graph, NodeRange nodes, const PlanOptions& options, std::span<const NodeId> order);

// The ranges that the options keep; none without an earlier plan.
std::vector<KeptRange> find_kept_ranges(const Graph& graph, NodeRange nodes, const PlanOptions& options);

// Whether a plan of the options can continue the earlier plan that they name. Throws ArgumentError.
void check_after(const Graph& graph, NodeRange nodes, const PlanOptions& options);

}  // namespace berth::internal::plan
