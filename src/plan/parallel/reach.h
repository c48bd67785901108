// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "berth/plan/graph.h"
#include "berth/plan/plan.h"

// Which nodes end before others begin, by the graph's own edges and by edges that a plan adds.
namespace berth::internal::plan::parallel {

// The direct predecessors of each node of a range, by position in the range.
std::vector<std::vector<NodeId>> predecessors(const Graph& graph, NodeRange nodes);

// The happens-before relation of all pairs: a bit set of the ancestors of each node.
class HappensBefore {
 public:
  HappensBefore(NodeRange nodes, const std::vector<std::vector<NodeId>>& before);

  bool precedes(NodeId before, NodeId after) const noexcept {
    if (before >= after) return false;
    const NodeId bit = before - first_;
    return (rows_[after - first_][bit / 64] >> (bit % 64) & 1) != 0;
  }

  NodeId begin() const noexcept { return first_; }

  // A bit for each node of the range, by position: whether it precedes all of these. REQUIRES: there are some.
  std::vector<std::uint64_t> before_all(const std::vector<NodeId>& nodes) const;

  // Adds an edge and all that follows from it. REQUIRES: before < after.
  void add(PlanEdge edge);

 private:
  void follow(std::size_t row, NodeId before);

  NodeId first_;
  std::vector<std::vector<std::uint64_t>> rows_;
};

// The same where a bit for each pair would be too many: a node precedes another only where some node between
// them, or one of the two, has every earlier node among its ancestors and every later one among its descendants.
// Says no where the truth may be yes, never the other way.
class Stages {
 public:
  Stages(NodeRange nodes, const std::vector<std::vector<NodeId>>& before);

  bool precedes(NodeId before, NodeId after) const noexcept { return stage_[before - first_] < stage_[after - first_]; }

  // The steps of the nodes that may run at the same time as some node of [begin, end).
  NodeRange around(NodeRange steps) const;

 private:
  NodeId first_;
  std::vector<std::uint32_t> stage_;  // of each node; never falls from one node to the next
};

// The longest path that ends with each node of the range, and that which begins with it, both with the node
// itself, in the nodes' costs.
struct PathLengths {
  std::vector<std::uint64_t> until;
  std::vector<std::uint64_t> from;
  std::uint64_t longest = 0;
};
PathLengths path_lengths(const Graph& graph, NodeRange nodes, const std::vector<std::vector<NodeId>>& before,
                         std::span<const PlanEdge> edges);

}  // namespace berth::internal::plan::parallel
