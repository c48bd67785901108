// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"
#include "berth/plan/graph.h"
#include "berth/plan/plan.h"
#include "berth/plan/verify.h"

// The state of one verification: the graph and the plan, what is known of each value, and the list of problems.
// Not synchronized: one per call.
namespace berth::internal::plan::verify {

// What follows from the graph about a value, computed independently of the planner.
struct Known {
  NodeId writer = UINT32_MAX;  // the step of the range that writes it
  NodeId last = 0;             // the last step of the range that reads it, or its writer's; the end of the
                               // range if it survives
  bool used = false;           // read in the range, or needed after it
  bool survives = false;
  bool kept = false;  // written before the range, whose plan says where it lies
  UnplannedReason reason = UnplannedReason::never_written;
};

class Judge {
 public:
  Judge(const Graph& the_graph, const PlanTables& the_plan, std::size_t most) : graph(the_graph), plan(the_plan), most_(most) {}

  const Graph& graph;
  const PlanTables& plan;
  std::vector<Known> facts = {};  // one for each value

  // The size of a value; 0 where it is unknown.
  std::size_t bytes(ValueId v) const { return graph.values[v].size_bytes().value_or(0); }

  // The node that runs at a step of the range, by the plan's order.
  NodeId node_at(NodeId step) const { return plan.order.empty() ? step : plan.order[step - plan.nodes.begin]; }

  template <class... Pieces>
  void say(PlanProblem::Kind kind, const Pieces&... pieces) {
    clean_ = false;
    if (problems_.size() < most_) problems_.push_back({kind, text::join(pieces...)});
  }
  bool clean() const noexcept { return clean_; }
  std::vector<PlanProblem> take() && { return std::move(problems_); }

  std::string value(ValueId v) const { return name("value ", graph.values[v].name, v); }
  std::string node(NodeId n) const { return name("node ", graph.nodes[n].name, n); }

  static bool ignores(const GraphNode& node, std::size_t input) {
    for (const std::uint32_t one : node.ignored_inputs)
      if (one == input) return true;
    return false;
  }

 private:
  static std::string name(std::string_view kind, const std::string& name, std::uint32_t number) {
    return name.empty() ? text::join(kind, number) : text::join(kind, text::quoted(name));
  }

  const std::size_t most_;
  bool clean_ = true;
  std::vector<PlanProblem> problems_ = {};
};

// Whether a joined output contains the input of a join option, by their locations.
bool is_joined(const Judge& judge, const GraphNode& node, const ViewOption& option);

// The values that the plan keeps and that have bytes, by device and offset.
std::vector<ValueId> kept_by_offset(const Judge& judge);

// Each reports what it finds wrong; later ones rely on what earlier ones have checked.
void check_order(Judge& judge);      // a topological order of the range that keeps the order of side effects
void check_shape(Judge& judge);      // tables of this graph, and which values have locations; fills in the facts
void check_locations(Judge& judge);  // bounds, alignment, extents, fixed offsets, slots
void check_chunks(Judge& judge);     // chunks disjoint, within their capacities, and every value in one of them
void check_reuse(Judge& judge);      // every claim against the options of the graph
void check_run(Judge& judge);        // simulates the graph: what every node finds when it reads
void check_totals(Judge& judge);     // buffers, bounds, outcome

// Simulates ranges one after another on the same memory, once each is right alone.
void check_together(std::deque<Judge>& judges);

}  // namespace berth::internal::plan::verify
