// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>

#include "base/text.h"
#include "berth/base/error.h"
#include "berth/plan/plan.h"
#include "plan/in_order.h"
#include "plan/lives.h"
#include "plan/plan_maker.h"
#include "plan/plan_options.h"
#include "plan/reorder/orders.h"
#include "plan/reorder/reorder.h"

// Plans in the given order, or in the best that is found: orders are packed by rising lower bound, until the
// next bound cannot win.
namespace berth {

namespace internal::plan {

namespace {

using Clock = Patience::Clock;

struct Trial {
  OrderAttempt attempt;
  std::vector<NodeId> nodes = {};  // empty: as given
};

double milliseconds(Clock::duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

class OrderSearch {
 public:
  OrderSearch(std::shared_ptr<const Graph> graph, const PlanOptions& options) : graph_(std::move(graph)), options_(options) {}

  Plan run() {
    gather();
    std::optional<Plan> best;
    for (std::size_t i = 0; i < trials_.size(); ++i) {
      Trial& trial = trials_[i];
      const bool is_given = trial.nodes.empty();
      // Only a smaller peak is a reason to change the order: at equal peaks the given order wins.
      if (best && best->has_locations() && trial.attempt.lower_bound_bytes + (is_given ? 0 : 1) > best->peak_bytes()) continue;
      Plan made = plan_in_order(graph_, options_for(trials_.size() - i, best), trial.nodes);
      if (made.has_locations()) trial.attempt.peak_bytes = made.peak_bytes();
      if (!best || is_better(made, is_given, *best)) best = std::move(made);
    }
    std::vector<OrderAttempt> attempts;
    for (Trial& trial : trials_) attempts.push_back(std::move(trial.attempt));
    return PlanMaker::with_orders(std::move(*best), std::move(attempts));
  }

 private:
  static bool is_better(const Plan& made, bool is_given, const Plan& best) {
    if (!made.has_locations())
      return is_given && !best.has_locations();  // an infeasibility proof is kept only
                                                 // for the given order
    return !best.has_locations() || made.peak_bytes() < best.peak_bytes() || (is_given && made.peak_bytes() == best.peak_bytes());
  }

  // The given order and the others, the least bound first.
  void gather() {
    const NodeRange nodes = planned_nodes(*graph_, options_);
    add({"given", 0, {}}, {});
    const std::vector<Life> lives = find_lives(*graph_, nodes, options_.alignment);
    const Patience patience(deadline(0.5), options_.cancel);
    for (NodeOrder& order : find_orders(*graph_, nodes, lives, options_.inplace, options_.order, patience))
      add({std::move(order.name), 0, {}}, std::move(order.nodes));
    std::stable_sort(trials_.begin(), trials_.end(),
                     [](const Trial& a, const Trial& b) { return a.attempt.lower_bound_bytes < b.attempt.lower_bound_bytes; });
  }

  void add(OrderAttempt attempt, std::vector<NodeId> nodes) {
    for (const std::size_t bound : bounds_in_order(*graph_, options_, nodes)) attempt.lower_bound_bytes += bound;
    trials_.push_back({std::move(attempt), std::move(nodes)});
  }

  bool has_limit() const { return options_.time_limit < std::chrono::hours(24 * 365); }

  // The end of a fraction of the time limit.
  std::optional<Clock::time_point> deadline(double share) const {
    if (!has_limit()) return std::nullopt;
    return start_ + std::chrono::duration_cast<Clock::duration>(options_.time_limit * share);
  }

  // The remaining time is for the remaining orders, most of it for the first of them.
  PlanOptions options_for(std::size_t left, const std::optional<Plan>& best) const {
    PlanOptions options = options_;
    if (has_limit()) {
      const std::chrono::duration<double> rest = options_.time_limit - (Clock::now() - start_);
      options.time_limit = std::max(rest, std::chrono::duration<double>(0)) * (left > 1 ? 0.6 : 1.0);
    }
    if (options_.on_better && best && best->has_locations())
      options.on_better = [tell = options_.on_better, peak = best->peak_bytes()](const Plan& plan) {
        if (plan.peak_bytes() < peak) tell(plan);
      };
    return options;
  }

  const Clock::time_point start_ = Clock::now();
  const std::shared_ptr<const Graph> graph_;
  const PlanOptions& options_;
  std::vector<Trial> trials_;
};

}  // namespace

}  // namespace internal::plan

using namespace internal::plan;

Plan plan(std::shared_ptr<const Graph> graph, const PlanOptions& options) {
  if (graph == nullptr)
    throw ArgumentError(ErrorCode::invalid_argument, {"planning a null graph", "there is nothing to plan", "pass a graph"});
  const Clock::time_point start = Clock::now();
  graph->validate();
  (void)check_options(*graph, options);
  Plan made = options.order == "given" ? plan_in_order(std::move(graph), options, {}) : OrderSearch(std::move(graph), options).run();
  return PlanMaker::with_time(std::move(made), milliseconds(Clock::now() - start));
}

Plan plan(Graph graph, const PlanOptions& options) { return berth::plan(std::make_shared<const Graph>(std::move(graph)), options); }

std::span<const PlanOrder> plan_orders() noexcept {
  static const std::vector<PlanOrder> all = [] {
    std::vector<PlanOrder> list;
    for (const OrderRule& rule : order_rules()) list.push_back({rule.name, rule.does});
    return list;
  }();
  return all;
}

}  // namespace berth
