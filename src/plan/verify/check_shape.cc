// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/allowance.h"
#include "berth/base/checked.h"
#include "plan/verify/judge.h"

namespace berth::internal::plan::verify {

namespace {

using enum PlanProblem::Kind;

bool sizes_agree(Judge& judge) {
  const Graph& graph = judge.graph;
  const PlanTables& plan = judge.plan;
  if (plan.locations.size() != graph.values.size())
    judge.say(shape, "the plan has ", plan.locations.size(), " locations for ", graph.values.size(), " values");
  if (plan.arenas.size() != graph.devices.size())
    judge.say(shape, "the plan has ", plan.arenas.size(), " arenas for ", graph.devices.size(), " devices");
  if (plan.nodes.begin > plan.nodes.end || plan.nodes.end > graph.nodes.size())
    judge.say(shape, "the plan is for nodes ", plan.nodes.begin, " to ", plan.nodes.end, " of ", graph.nodes.size());
  constexpr NodeId kMostParallel = 1 << 16;  // the happens-before relation of more would not fit into memory
  if (plan.parallel > 1 && plan.nodes.end - plan.nodes.begin > kMostParallel)
    judge.say(shape, "a parallel plan of more than ", kMostParallel, " nodes");
  if (plan.parallel < 1) judge.say(shape, "the plan is for ", plan.parallel, " parallel branches");
  if (!is_power_of_two(plan.alignment)) judge.say(alignment, "the plan's alignment is ", plan.alignment);
  return judge.clean();
}

void check_edges(Judge& judge) {
  const NodeRange& nodes = judge.plan.nodes;
  if (!judge.plan.edges.empty() && judge.plan.parallel == 1) judge.say(shape, "a plan for nodes in order adds edges");
  for (const PlanEdge& edge : judge.plan.edges)
    if (edge.before < nodes.begin || edge.before >= edge.after || edge.after >= nodes.end)
      judge.say(shape, "an edge from node ", edge.before, " to ", edge.after);
}

void see_reads(Judge& judge, NodeId n, const GraphNode& node) {
  const NodeRange& nodes = judge.plan.nodes;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId v = node.inputs[i];
    if (v == kNoValue || Judge::ignores(node, i)) continue;
    Known& fact = judge.facts[v];
    if (n >= nodes.end) fact.survives = true;
    if (n < nodes.begin) continue;
    fact.used = true;
    fact.last = std::max(fact.last, std::min(n, nodes.end));
  }
}

void gather_facts(Judge& judge) {
  const Graph& graph = judge.graph;
  const NodeRange& nodes = judge.plan.nodes;
  judge.facts.resize(graph.values.size());
  std::vector<bool> elsewhere(graph.values.size(), false);
  for (NodeId n = 0; n < graph.nodes.size(); ++n) {  // n is the step
    base::checkpoint();
    const bool inside = n >= nodes.begin && n < nodes.end;
    const GraphNode& node = graph.nodes[inside ? judge.node_at(n) : n];
    for (const ValueId v : node.outputs) {
      if (v == kNoValue) continue;
      if (!inside) {
        elsewhere[v] = true;
      } else {
        judge.facts[v].writer = n;
        judge.facts[v].last = n;
      }
    }
    see_reads(judge, n, node);
  }
  for (ValueId v = 0; v < graph.values.size(); ++v) {
    const GraphValue& value = graph.values[v];
    Known& fact = judge.facts[v];
    fact.survives |= value.output;
    fact.used |= fact.survives;
    if (fact.survives) fact.last = nodes.end;
    fact.reason = value.external              ? UnplannedReason::external
                  : elsewhere[v]              ? UnplannedReason::outside_range
                  : fact.writer == UINT32_MAX ? UnplannedReason::never_written
                  : value.dynamic             ? UnplannedReason::dynamic
                  : value.size_bytes()        ? UnplannedReason::placed
                                              : UnplannedReason::unknown_size;
  }
}

}  // namespace

void check_shape(Judge& judge) {
  if (!sizes_agree(judge)) return;
  check_edges(judge);
  gather_facts(judge);
  const bool has_locations = judge.plan.outcome == PlanOutcome::optimal || judge.plan.outcome == PlanOutcome::feasible;
  for (ValueId v = 0; v < judge.facts.size(); ++v) {
    const ValueLocation& location = judge.plan.locations[v];
    const bool expected = has_locations && judge.facts[v].reason == UnplannedReason::placed;
    if (location.planned() != expected)
      judge.say(shape, judge.value(v), expected ? " has no location" : " has a location", ", though it is ",
                to_string(judge.facts[v].reason));
    if (location.reason != judge.facts[v].reason)
      judge.say(shape, judge.value(v), " is said to be ", to_string(location.reason), " and is ", to_string(judge.facts[v].reason));
  }
}

}  // namespace berth::internal::plan::verify
