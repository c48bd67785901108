// SPDX-License-Identifier: Apache-2.0
#include "plan/reorder/reorder.h"

#include <algorithm>

#include "base/allowance.h"
#include "base/text.h"
#include "plan/reorder/improve.h"
#include "plan/reorder/orders.h"
#include "plan/reorder/walk.h"

namespace berth::internal::plan {

namespace {

constexpr std::size_t kMostImproved = 3;  // the best of the orders are improved
constexpr std::size_t kMostKept = 6;

struct Candidate {
  std::string name;
  std::vector<UnitId> units;
  std::size_t peak = 0;
};

void sort_by_peak(std::vector<Candidate>& candidates) {
  std::stable_sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) { return a.peak < b.peak; });
}

// Adds a candidate unless an equal order is there.
void add(std::vector<Candidate>& candidates, Candidate candidate) {
  const bool known = std::any_of(candidates.begin(), candidates.end(), [&](const Candidate& one) { return one.units == candidate.units; });
  if (!known) candidates.push_back(std::move(candidate));
}

}  // namespace

std::vector<NodeOrder> find_orders(const Graph& graph, NodeRange nodes, const std::vector<Life>& lives, bool reuse, std::string_view which,
                                   const Patience& patience) {
  const OrderModel model = make_order_model(graph, nodes, lives, reuse);
  std::vector<Candidate> candidates;
  for (const OrderRule& rule : order_rules()) {
    if ((which != "best" && which != rule.name) || patience.over()) continue;
    try {
      const base::Allowance until_then({.until = patience.deadline()});
      std::vector<UnitId> units = rule.order(model);
      const std::size_t peak = peak_of(model, units);
      add(candidates, {std::string(rule.name), std::move(units), peak});
    } catch (const base::OutOfTime&) {
      break;
    }
  }
  sort_by_peak(candidates);
  if (which == "best") {
    const std::size_t most = std::min(kMostImproved, candidates.size());
    for (std::size_t i = 0; i < most; ++i) {
      ImprovedOrder improved = improve_order(model, candidates[i].units, patience);
      const bool is_least = improved.is_least;
      add(candidates, {candidates[i].name + "+", std::move(improved.order), improved.peak_bytes});
      if (is_least) break;
    }
    sort_by_peak(candidates);
  }
  std::vector<NodeOrder> orders;
  for (Candidate& one : candidates) {
    std::vector<NodeId> order = nodes_in_order(model, one.units);
    if (orders.size() == kMostKept) break;
    if (!std::is_sorted(order.begin(), order.end())) orders.push_back({std::move(one.name), std::move(order), one.peak});
  }
  return orders;
}

Graph in_order(const Graph& graph, NodeRange nodes, const std::vector<NodeId>& order) {
  Graph out = graph;
  for (std::size_t i = 0; i < order.size(); ++i) out.nodes[nodes.begin + i] = graph.nodes[order[i]];
  return out;
}

}  // namespace berth::internal::plan
