// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include "berth/plan/graph.h"

namespace berth::testing {

// Live in steps [begin, end).
struct LifeLine {
  std::uint32_t begin;
  std::uint32_t end;
  std::size_t bytes;
};

// A graph with one value for each lifetime, in their order, and one node for each step.
inline Graph lives_graph(const std::vector<LifeLine>& lives) {
  Graph graph;
  std::uint32_t steps = 0;
  for (const LifeLine& life : lives) steps = std::max(steps, life.end);
  graph.nodes.resize(steps);
  for (const LifeLine& life : lives) {
    const ValueId v = graph.add_value({.bytes = life.bytes});
    graph.nodes[life.begin].outputs.push_back(v);
    if (life.end - 1 != life.begin) graph.nodes[life.end - 1].inputs.push_back(v);
  }
  return graph;
}

}  // namespace berth::testing
