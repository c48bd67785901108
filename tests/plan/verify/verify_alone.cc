// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "berth/plan/verify.h"

// A program that links only the verifier and base/: one plan that is right, and one that is not.
int main() {
  using namespace berth;
  Graph graph;
  graph.values = {GraphValue{.name = "a", .bytes = 8}, GraphValue{.name = "b", .bytes = 8, .output = true}};
  graph.nodes = {GraphNode{.outputs = {0}}, GraphNode{.inputs = {0}, .outputs = {1}}};
  PlanTables plan;
  plan.outcome = PlanOutcome::optimal;
  plan.nodes = {0, 2};
  plan.arenas = {{.bytes = 16, .lower_bound_bytes = 16, .naive_bytes = 16}};
  for (std::uint32_t v = 0; v < 2; ++v)
    plan.locations.push_back({.reuse = Reuse::own, .reason = UnplannedReason::placed, .buffer = v, .offset = 8 * v, .extent_bytes = 8});
  const bool accepts = verify_plan(graph, plan).empty();
  plan.locations[1].offset = 4;
  const bool refuses = !verify_plan(graph, plan).empty();
  std::puts(accepts && refuses ? "the verifier judges alone" : "the verifier is wrong");
  return accepts && refuses ? 0 : 1;
}
