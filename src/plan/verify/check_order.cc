// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "plan/verify/judge.h"

namespace berth::internal::plan::verify {

namespace {

using enum PlanProblem::Kind;

// Whether the order is a permutation of the range.
bool is_complete(Judge& judge) {
  const NodeRange& nodes = judge.plan.nodes;
  if (judge.plan.order.size() != nodes.end - nodes.begin)
    judge.say(order, "the order has ", judge.plan.order.size(), " nodes of ", nodes.end - nodes.begin);
  std::vector<bool> seen(nodes.end - nodes.begin, false);
  for (const NodeId n : judge.plan.order) {
    if (n < nodes.begin || n >= nodes.end)
      judge.say(order, "the order has node ", n, ", which is not planned");
    else if (seen[n - nodes.begin])
      judge.say(order, judge.node(n), " runs twice");
    else
      seen[n - nodes.begin] = true;
  }
  return judge.clean();
}

// Checks that values are written before they are read, and that side effects keep their order. Values from
// before the range exist from the start.
void check_waits(Judge& judge) {
  const NodeRange& nodes = judge.plan.nodes;
  std::vector<bool> missing(judge.graph.values.size(), false);
  for (NodeId n = nodes.begin; n < nodes.end; ++n)
    for (const ValueId v : judge.graph.nodes[n].outputs)
      if (v != kNoValue) missing[v] = true;
  NodeId last_effect = 0;
  for (const NodeId n : judge.plan.order) {
    const GraphNode& node = judge.graph.nodes[n];
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (const ValueId v = node.inputs[i]; v != kNoValue && missing[v] && !Judge::ignores(node, i))
        judge.say(order, judge.node(n), " reads ", judge.value(v), " before it is written");
    for (const ValueId v : node.outputs)
      if (v != kNoValue) missing[v] = false;
    if (!node.side_effects) continue;
    if (n < last_effect) judge.say(order, judge.node(n), " has side effects and runs after ", judge.node(last_effect), ", which has too");
    last_effect = std::max(last_effect, n);
  }
}

}  // namespace

void check_order(Judge& judge) {
  if (judge.plan.order.empty()) return;
  const NodeRange& nodes = judge.plan.nodes;
  if (judge.plan.parallel > 1) return judge.say(order, "a parallel plan has an order of its own");
  if (nodes.begin > nodes.end || nodes.end > judge.graph.nodes.size())
    return judge.say(shape, "the plan is for nodes ", nodes.begin, " to ", nodes.end, " of ", judge.graph.nodes.size());
  if (is_complete(judge)) check_waits(judge);
}

}  // namespace berth::internal::plan::verify
