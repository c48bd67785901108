// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "berth/base/error.h"
#include "berth/export.h"
#include "berth/plan/graph.h"
#include "berth/plan/plan.h"

// The judge of plans. It runs the graph in thought, node by node, and keeps for every byte of every arena whose content is there: a node
// that would read a byte which no longer holds what it should is a wrong plan, whatever the planner's tables say of lives and classes. It
// shares no code with the planner, and is a target of its own (berth_verify) that links base/ alone.
namespace berth {

// One thing that is wrong, with the names and numbers in `text`.
struct PlanProblem {
  enum class Kind : std::uint8_t {
    shape,      // the tables are not those of this graph
    bounds,     // outside the arena, or an arena past its capacity
    alignment,  // an offset or an extent
    overlap,    // a value is overwritten while it is still needed
    sharing,    // an option that the graph does not give, or may not be taken
    order,      // nodes that cannot run as the plan says, or use the same bytes at once
    totals,     // a peak, a bound or an outcome that is not true
  };
  Kind kind;
  std::string text;
};
BERTH_EXPORT std::string_view to_string(PlanProblem::Kind kind) noexcept;

// What is wrong with a plan, the first `most` things, which is at least one; nothing when it is right. O((values + reads) log values) and, where joins lie in joins, what
// each of them holds again, up to a limit past which a plan is refused; with `parallel` the square of the nodes in bits. REQUIRES: graph.validate() has passed.
BERTH_EXPORT std::vector<PlanProblem> verify_plan(const Graph& graph, const PlanTables& plan, std::size_t most = 10);

}  // namespace berth
