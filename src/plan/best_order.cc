// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>

#include "base/allowance.h"
#include "base/deadline.h"
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
      std::optional<Plan> made = try_order(trial, options_for(trials_.size() - i, best), best.has_value());
      if (!made) break;
      if (made->has_locations()) trial.attempt.peak_bytes = made->peak_bytes();
      if (!best || is_better(*made, is_given, *best)) best = std::move(made);
    }
    std::vector<OrderAttempt> attempts;
    for (Trial& trial : trials_) attempts.push_back(std::move(trial.attempt));
    return PlanMaker::with_orders(std::move(*best), std::move(attempts));
  }

 private:
  // Nothing when the time is over and there is a plan already.
  std::optional<Plan> try_order(const Trial& trial, const PlanOptions& options, bool has_plan) const {
    try {
      return plan_in_order(graph_, options, trial.nodes);
    } catch (const base::OutOfTime&) {
      if (!has_plan) throw;
      return std::nullopt;
    }
  }

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

  // The end of a fraction of the time limit.
  std::optional<Clock::time_point> deadline(double share) const {
    return is_limit(options_.time_limit) ? end_of(options_.time_limit * share, start_) : std::nullopt;
  }

  // The remaining time is for the remaining orders, most of it for the first of them.
  PlanOptions options_for(std::size_t left, const std::optional<Plan>& best) const {
    PlanOptions options = options_;
    if (is_limit(options_.time_limit)) options.time_limit = left_of(options_.time_limit, start_) * (left > 1 ? 0.6 : 1.0);
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

// The share of making one plan that validating its graph takes. Over many shapes it is 0.06 to 0.28: more of those that
// are quick.
constexpr double kValidated = 0.1;

// The help leaves as much again, since the estimate comes from the pace so far, and a machine may be busier later.
[[noreturn]] void refuse_limit(const Graph& graph, std::chrono::duration<double> limit, std::chrono::duration<double> whole) {
  const std::chrono::milliseconds needed = rounded_up(std::max(whole, limit));
  throw Error(ErrorCode::timeout,
              {text::join("planning ", graph.values.size(), " values within ", text::duration(rounded_up(limit))),
               text::join("one verified plan takes about ", text::duration(needed), " here"),
               text::join("allow at least ", text::duration(rounded_up(2 * needed)))},
              {{"values", graph.values.size()}, {"needed_ms", needed.count()}});
}

}  // namespace

}  // namespace internal::plan

using namespace internal;
using namespace internal::plan;

Plan plan(std::shared_ptr<const Graph> graph, const PlanOptions& options) {
  if (graph == nullptr)
    throw ArgumentError(ErrorCode::invalid_argument, {"planning a null graph", "there is nothing to plan", "pass a graph"});
  const Clock::time_point start = Clock::now();
  check_time_limit(options.time_limit);
  base::Allowance allowance({.until = last_end_of(options.time_limit, start)});
  try {
    graph->validate();
    base::reached(kValidated);
    (void)check_options(*graph, options);
    PlanOptions rest = options;
    rest.time_limit = left_of(options.time_limit, start);
    Plan made = options.order == "given" ? plan_in_order(graph, rest, {}) : OrderSearch(graph, rest).run();
    return PlanMaker::with_time(std::move(made), milliseconds(Clock::now() - start));
  } catch (const base::OutOfTime&) {
    refuse_limit(*graph, options.time_limit, allowance.whole());
  }
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
