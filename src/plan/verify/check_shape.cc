// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/allowance.h"
#include "berth/base/checked.h"
#include "plan/look_ahead.h"
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

void check_colours(Judge& judge) {
  const PlanTables& plan = judge.plan;
  if (!plan.colours.empty() && (plan.parallel == 1 || plan.colours.size() != plan.nodes.end - plan.nodes.begin))
    judge.say(shape, "the plan has ", plan.colours.size(), " colours for ", plan.nodes.end - plan.nodes.begin, " nodes, ", plan.parallel,
              " at once");
  for (const std::uint32_t colour : plan.colours)
    if (colour >= static_cast<std::uint32_t>(plan.parallel)) return judge.say(shape, "a node of colour ", colour, " of ", plan.parallel);
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

// What a plan may keep: values from before its range that have a size and are needed from there on. In a parallel
// plan they stay to its end.
void see_kept(Judge& judge, ValueId v, NodeId writer) {
  const GraphValue& value = judge.graph.values[v];
  Known& fact = judge.facts[v];
  const NodeRange& nodes = judge.plan.nodes;
  if (judge.plan.locations[v].reuse != Reuse::kept || nodes.begin == nodes.end) return;
  if (writer >= nodes.begin || value.external || value.dynamic || !value.size_bytes() || !fact.used) return;
  fact.kept = true;
  fact.survives |= judge.plan.parallel > 1;
  fact.writer = nodes.begin;
  fact.last = fact.survives ? nodes.end : std::max(fact.last, nodes.begin);
  fact.reason = UnplannedReason::placed;
}

void gather_facts(Judge& judge) {
  const Graph& graph = judge.graph;
  const NodeRange& nodes = judge.plan.nodes;
  judge.facts.resize(graph.values.size());
  std::vector<NodeId> elsewhere(graph.values.size(), UINT32_MAX);  // the node outside the range that writes it
  for (NodeId n = 0; n < graph.nodes.size(); ++n) {                // n is the step
    base::checkpoint();
    look_ahead(graph, n, judge.facts, elsewhere);
    const bool inside = n >= nodes.begin && n < nodes.end;
    const GraphNode& node = graph.nodes[inside ? judge.node_at(n) : n];
    for (const ValueId v : node.outputs) {
      if (v == kNoValue) continue;
      if (!inside) {
        elsewhere[v] = n;
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
    fact.reason = value.external               ? UnplannedReason::external
                  : elsewhere[v] != UINT32_MAX ? UnplannedReason::outside_range
                  : fact.writer == UINT32_MAX  ? UnplannedReason::never_written
                  : value.dynamic              ? UnplannedReason::dynamic
                  : value.size_bytes()         ? UnplannedReason::placed
                                               : UnplannedReason::unknown_size;
    see_kept(judge, v, elsewhere[v]);
  }
}

}  // namespace

void check_shape(Judge& judge) {
  if (!sizes_agree(judge)) return;
  check_edges(judge);
  check_colours(judge);
  gather_facts(judge);
  const bool has_locations = judge.plan.outcome == PlanOutcome::optimal || judge.plan.outcome == PlanOutcome::feasible;
  for (ValueId v = 0; v < judge.facts.size(); ++v) {
    const ValueLocation& location = judge.plan.locations[v];
    const bool expected = has_locations && judge.facts[v].reason == UnplannedReason::placed;
    if (location.planned() != expected)
      judge.say(shape, judge.value(v), expected ? " has no location" : " has a location", ", though it is ",
                to_string(judge.facts[v].reason));
    if (location.reuse == Reuse::kept && !judge.facts[v].kept)
      judge.say(shape, judge.value(v), " is said to be kept, and is not one that lives on from before the range");
    if (location.reason != judge.facts[v].reason)
      judge.say(shape, judge.value(v), " is said to be ", to_string(location.reason), " and is ", to_string(judge.facts[v].reason));
  }
}

}  // namespace berth::internal::plan::verify
