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

// What to do when a graph does not fit a memory budget: by how much it misses, and what to recompute, or to
// move to another device and back (offload), so that it fits.
//
//     BudgetAnswer answer = plan_budget(graph, {.budget_bytes = 8_GiB, .bandwidth = 25e9});
//     if (!answer.fits) {
//       answer.over_bytes;                         // so much too large
//       answer.proposals.front().items;            // what to do about it
//       answer.proposals.front().plan;             // of the graph with all that done: it fits, and the verifier has passed it
//     }
//
// A proposal is minimal: with any one item left out, no plan that was found fits. It is not claimed to be the
// cheapest. Pure functions: safe to call from any thread.
namespace berth {

// A value that is not kept during a gap between two uses.
struct BudgetItem {
  enum class Kind : std::uint8_t {
    recompute,  // the nodes that compute it run again before its next use
    move,       // it is copied to another device after its last use, and back before its next use
  };
  Kind kind = Kind::recompute;
  ValueId value = kNoValue;
  NodeId after = 0;                // the last node that uses it before the gap, or writes it …
  NodeId before = 0;               // … and the first that uses it after; the number of nodes: the caller, after
                                   // the graph
  std::vector<NodeId> again = {};  // recompute: the nodes that run again, in this order
  std::size_t bytes = 0;           // of the value
  double time_s = 0;               // move: both copies, at the given bandwidth
  friend bool operator==(const BudgetItem&, const BudgetItem&) = default;
};
BERTH_EXPORT std::string_view to_string(BudgetItem::Kind kind) noexcept;

struct BudgetOptions {
  std::size_t budget_bytes = SIZE_MAX;  // for the arena of `device`
  std::uint32_t device = 0;
  std::string move_to = {};      // device that values are moved to; empty: "cpu:0", or "elsewhere:0" when that
                                 // is the device itself
  double bandwidth = 16e9;       // bytes per second, in each direction
  std::size_t most_items = 256;  // a proposal that needs more is not made
  PlanOptions plan = {};         // how the graph is planned; proposals use the order that it finds
};

// A set of items that makes the graph fit.
struct BudgetProposal {
  std::string name;  // "recompute", "move", or "both" when it does some of each
  std::vector<BudgetItem> items;
  Plan plan;  // of the graph that with_items makes
  std::size_t nodes_again = 0;
  std::size_t bytes_moved = 0;  // both copies of every move
  double time_s = 0;            // of the moves
};

struct BudgetAnswer {
  Plan plan;  // the best without items; its graph is in the plan's order, and items refer to the nodes of that
              // graph
  bool fits = false;
  std::size_t over_bytes = 0;             // by which the plan's arena exceeds the budget
  std::size_t least_bytes = 0;            // what some node alone needs, or the outputs at the end: a lower
                                          // bound for every proposal
  std::vector<BudgetProposal> proposals;  // none when it fits, or when none was found
};

// Throws ArgumentError: as `plan`; and (invalid_argument) for a bandwidth that is not a number above 0, a
// device that is not in the graph, and options that have no meaning here: a range of nodes, parallel plans,
// arenas and chunks, a capacity.
BERTH_EXPORT BudgetAnswer plan_budget(Graph graph, const BudgetOptions& options);

// Applies items to a graph: the nodes that run again, or `MoveOut` and `MoveBack`, are inserted where they run,
// and later nodes read the new value. All other values keep their numbers. Throws
// ArgumentError(invalid_argument) for an item that does not refer to this graph.
BERTH_EXPORT Graph with_items(const Graph& graph, std::span<const BudgetItem> items, std::string_view move_to);

}  // namespace berth
