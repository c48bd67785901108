// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/export.h"
#include "berth/plan/graph.h"
#include "berth/plan/plan.h"

// What to do when a graph does not fit: by how much it misses a budget, and what to run again, or to move to another device and back, so that
// it fits.
//
//     BudgetAnswer answer = plan_budget(graph, {.budget_bytes = 8_GiB, .bandwidth = 25e9});
//     if (!answer.fits) {
//       answer.over_bytes;                         // so much too large
//       answer.proposals.front().items;            // what to do about it
//       answer.proposals.front().plan;             // of the graph with all that done: it fits, and the verifier has passed it
//     }
//
// A proposal is minimal: with any one item left out, no plan that was found fits. It is not claimed to be the cheapest.
namespace berth {

// A value that nobody uses for a while is not kept for that while.
struct BudgetItem {
  enum class Kind : std::uint8_t {
    recompute,  // the nodes that make it run again before it is used next
    move,       // it goes to another device after it was used, and comes back before it is used next
  };
  Kind kind = Kind::recompute;
  ValueId value = kNoValue;
  NodeId after = 0;                // the node that used it last, or wrote it …
  NodeId before = 0;               // … and the one that uses it next; the number of nodes: who comes after the graph
  std::vector<NodeId> again = {};  // recompute: what runs again, in this order
  std::size_t bytes = 0;           // of the value
  double time_s = 0;               // move: there and back, at the given bandwidth
  friend bool operator==(const BudgetItem&, const BudgetItem&) = default;
};
BERTH_EXPORT std::string_view to_string(BudgetItem::Kind kind) noexcept;

struct BudgetOptions {
  std::size_t budget_bytes = SIZE_MAX;  // for the arena of `device`
  std::uint32_t device = 0;
  std::string move_to = {};      // where values are moved to; empty: "cpu:0", or "elsewhere:0" when that is the device itself
  double bandwidth = 16e9;       // bytes a second, each way
  std::size_t most_items = 256;  // a proposal that needs more is not made
  PlanOptions plan = {};         // how the graph is planned; an order that it finds is that of the proposals too
};

// What makes the graph fit.
struct BudgetProposal {
  std::string name;  // "recompute", "move", or "both" when it does some of each
  std::vector<BudgetItem> items;
  Plan plan;  // of the graph that with_items makes
  std::size_t nodes_again = 0;
  std::size_t bytes_moved = 0;  // there and back
  double time_s = 0;            // of the moves
};

struct BudgetAnswer {
  Plan plan;  // the best without any change; its graph is in the order of the plan, and items speak of its nodes
  bool fits = false;
  std::size_t over_bytes = 0;             // what the plan's arena is larger than the budget
  std::size_t least_bytes = 0;            // what some node needs by itself, or the outputs in the end: no proposal goes below
  std::vector<BudgetProposal> proposals;  // none when it fits, or when none was found
};

// Throws ArgumentError: as `plan`; and (invalid_argument) for a bandwidth that is no number above 0, a device that the graph has not, and
// options that have no meaning here: a range of nodes, parallel plans, arenas and chunks, a capacity.
BERTH_EXPORT BudgetAnswer plan_budget(Graph graph, const BudgetOptions& options);

// The graph with items carried out: nodes that run again, or `MoveOut` and `MoveBack`, stand where they run, and who comes later reads the new
// value. The other values and their numbers are as before. Throws ArgumentError(invalid_argument) for an item that is not of this graph.
BERTH_EXPORT Graph with_items(const Graph& graph, std::span<const BudgetItem> items, std::string_view move_to);

}  // namespace berth
