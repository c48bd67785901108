// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/refuse.h"
#include "base/text.h"
#include "berth/base/error.h"
#include "berth/plan/parallel.h"
#include "plan/parallel/reach.h"

namespace berth {

using namespace internal;
using namespace internal::plan::parallel;

namespace {

constexpr std::uint32_t kNoColour = UINT32_MAX;
constexpr std::size_t kNobody = SIZE_MAX;

NodeRange checked_range(const Graph& graph, NodeRange nodes) {
  const auto count = static_cast<NodeId>(graph.nodes.size());
  if (nodes.begin > nodes.end || nodes.end > count)
    base::refuse(ErrorCode::out_of_bounds, text::join("a path through nodes ", nodes.begin, " to ", nodes.end),
                 text::join("the graph has ", count), "use a range inside, begin before end");
  return nodes == NodeRange{} ? NodeRange{0, count} : nodes;
}

// The path with the most nodes that have no colour, from its last node back.
std::vector<std::size_t> path_to_colour(const std::vector<std::vector<NodeId>>& before, NodeId first,
                                        const std::vector<std::uint32_t>& colours) {
  std::vector<std::size_t> length(colours.size(), 0);  // of the best path that ends here, in nodes without a colour
  std::vector<std::size_t> from(colours.size(), kNobody);
  std::size_t best = 0;
  for (std::size_t i = 0; i < colours.size(); ++i) {
    for (const NodeId one : before[i])
      if (from[i] == kNobody || length[one - first] > length[from[i]]) from[i] = one - first;
    length[i] = (colours[i] == kNoColour ? 1 : 0) + (from[i] == kNobody ? 0 : length[from[i]]);
    if (length[i] > length[best]) best = i;
  }
  std::vector<std::size_t> path;
  if (colours.empty() || length[best] == 0) return path;
  for (std::size_t i = best; i != kNobody; i = from[i]) path.push_back(i);
  return path;
}

}  // namespace

std::vector<std::uint32_t> colour_nodes(const Graph& graph, NodeRange nodes, std::uint32_t most) {
  if (most == 0) base::refuse("nodes in no colours", "every node gets one", "give at least 1");
  nodes = checked_range(graph, nodes);
  const std::vector<std::vector<NodeId>> before = predecessors(graph, nodes);
  std::vector<std::uint32_t> colours(before.size(), kNoColour);
  for (std::uint32_t colour = 0; colour + 1 < most; ++colour) {
    const std::vector<std::size_t> path = path_to_colour(before, nodes.begin, colours);
    if (path.empty()) break;
    for (const std::size_t i : path)
      if (colours[i] == kNoColour) colours[i] = colour;
  }
  std::ranges::replace(colours, kNoColour, most - 1);
  return colours;
}

std::uint64_t longest_path(const Graph& graph, NodeRange nodes, std::span<const PlanEdge> edges) {
  nodes = checked_range(graph, nodes);
  return path_lengths(graph, nodes, predecessors(graph, nodes), edges).longest;
}

}  // namespace berth
