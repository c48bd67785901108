// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "berth/plan/graph.h"

namespace berth::internal::plan {

// All lines of an item, of which the walk may need any; none if the list has no such item, as in a graph that is yet to
// be validated.
template <class Item>
[[gnu::always_inline]] inline void prefetch(const std::vector<Item>& list, std::size_t index) {
  if (index >= list.size()) return;
  constexpr std::size_t kLine = 64;
  const auto* const bytes = reinterpret_cast<const std::byte*>(list.data() + index);
  for (std::size_t at = 0; at < sizeof(Item); at += kLine) __builtin_prefetch(bytes + at);
}

// Prefetches for a walk over the nodes, which is at node n: what it will find in lists that have an item for each
// value. Values are not numbered in the order of the nodes that use them, so that a walk over a large graph would wait
// for memory at each. Only a hint, and none for nodes in another order. Inlined always: gcc takes a function that only
// prefetches for one without effect, and drops the call.
template <class... Items>
[[gnu::always_inline]] inline void look_ahead(const Graph& graph, NodeId n, const std::vector<Items>&... lists) {
  constexpr std::size_t kNode = 24;    // how far ahead: the node, …
  constexpr std::size_t kValues = 16;  // … its lists of values, …
  constexpr std::size_t kItems = 8;    // … and what the lists have for these: each takes about a cache miss
  constexpr std::size_t kMost = 4;     // values of each list
  const std::vector<GraphNode>& nodes = graph.nodes;
  if (n + kNode >= nodes.size()) return;
  prefetch(nodes, n + kNode);
  __builtin_prefetch(nodes[n + kValues].inputs.data());
  __builtin_prefetch(nodes[n + kValues].outputs.data());
  for (const std::vector<ValueId>* values : {&nodes[n + kItems].inputs, &nodes[n + kItems].outputs})
    for (std::size_t i = 0; i < std::min(values->size(), kMost); ++i) (prefetch(lists, (*values)[i]), ...);
}

}  // namespace berth::internal::plan
