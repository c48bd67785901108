// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "berth/base/error.h"
#include "berth/export.h"
#include "berth/plan/graph.h"
#include "berth/plan/plan.h"

// The verifier of plans. It simulates the graph, node by node, and tracks for every byte of every arena whose
// content it holds: a plan is wrong if a node would read a byte that no longer holds what it should, whatever
// the planner's tables say of lifetimes and buffers. It shares no code with the planner, and is a target of its
// own (berth_verify) that links base/ alone. Stateless: safe to call from any thread.
namespace berth {

// One problem, with names and numbers in `text`.
struct PlanProblem {
  enum class Kind : std::uint8_t {
    shape,      // the tables are not those of this graph
    bounds,     // a value outside its arena, or an arena past its capacity
    alignment,  // an offset or an extent
    overlap,    // a value is overwritten while it is still needed
    reuse,      // an option that the graph does not give, or that may not be taken
    order,      // an order in which nodes cannot run, or a race: nodes that use the same bytes concurrently
    totals,     // a peak, a bound or an outcome that is not true
  };
  Kind kind;
  std::string text;
};
BERTH_EXPORT std::string_view to_string(PlanProblem::Kind kind) noexcept;

// The problems of a plan, the first `most` of them (at least one); empty when it is right. O((values + reads)
// log values), plus the content of each join nested in a join, up to a limit past which a plan is refused; with
// `parallel`, a walk along all dependencies for every few hundred nodes. REQUIRES: graph.validate() has passed.
BERTH_EXPORT std::vector<PlanProblem> verify_plan(const Graph& graph, const PlanTables& plan, std::size_t most = 10);

// The problems of plans of ranges of one graph that run one after another on the same memory: those of each, and what a
// later range overwrites that is still needed, or expects where no earlier one put it. What the first keeps is taken as
// it says. No two ranges overlap.
BERTH_EXPORT std::vector<PlanProblem> verify_plans(std::span<const Plan> plans, std::size_t most = 10);

}  // namespace berth
