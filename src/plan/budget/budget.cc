// SPDX-License-Identifier: Apache-2.0
#include "berth/plan/budget.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>

#include "base/allowance.h"
#include "base/deadline.h"
#include "base/refuse.h"
#include "base/text.h"
#include "berth/base/error.h"
#include "plan/budget/changed_graph.h"
#include "plan/budget/gaps.h"
#include "plan/in_order.h"
#include "plan/pack/packer.h"
#include "plan/plan_options.h"
#include "plan/reorder/reorder.h"

namespace berth {

using namespace internal;
using namespace internal::plan;

namespace internal::plan {

namespace {

using Clock = Patience::Clock;
using Items = std::vector<BudgetItem>;

enum class Ways : std::uint8_t { recompute, move, both };

bool allows(Ways ways, BudgetItem::Kind kind) { return ways == Ways::both || (ways == Ways::move) == (kind == BudgetItem::Kind::move); }

// The interval in which a value is idle, in positions (`Stand`) of a changed graph: strictly between the two.
struct Idle {
  Stand begin;
  Stand end;
};
Idle idle_of(const BudgetItem& item) { return {2 * Stand{item.after} + 2, 2 * Stand{item.before}}; }

// Finds items that make a graph fit, greedily: gaps are closed at the peak, the best ratio of freed bytes to
// cost first; then items that turn out not to be needed are removed.
class Proposer {
 public:
  Proposer(std::shared_ptr<const Graph> graph, const BudgetOptions& options, std::vector<Gap> gaps, const Patience& patience)
      : graph_(std::move(graph)), options_(options), gaps_(std::move(gaps)), patience_(patience) {}

  // Nothing when there is no such proposal, or when it was not found in time.
  std::optional<BudgetProposal> propose(Ways ways) {
    try {
      return find(ways);
    } catch (const base::OutOfTime&) {
      return std::nullopt;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::timeout) throw;
      return std::nullopt;
    }
  }

 private:
  std::optional<BudgetProposal> find(Ways ways) {
    std::optional<Items> items = gather(ways);
    if (!items) return std::nullopt;
    std::optional<Plan> plan = take_back(*items);
    if (!plan) return std::nullopt;
    BudgetProposal proposal{name_of(*items), std::move(*items), std::move(*plan)};
    for (const BudgetItem& item : proposal.items) {
      proposal.nodes_again += item.again.size();
      proposal.bytes_moved += item.kind == BudgetItem::Kind::move ? 2 * item.bytes : 0;
      proposal.time_s += item.time_s;
    }
    return proposal;
  }

  static std::string name_of(const Items& items) {
    const auto moves =
        std::count_if(items.begin(), items.end(), [](const BudgetItem& item) { return item.kind == BudgetItem::Kind::move; });
    return moves == 0 ? "recompute" : static_cast<std::size_t>(moves) == items.size() ? "move" : "both";
  }

  std::size_t bytes_of(const Plan& plan) const { return plan.has_locations() ? plan.tables().arenas[options_.device].bytes : SIZE_MAX; }

  // Within what is left of the time.
  Plan plan_of(Graph graph) const {
    PlanOptions options = options_.plan;
    if (const std::optional<Clock::time_point>& end = patience_.deadline())
      options.time_limit = std::max<std::chrono::duration<double>>(*end - Clock::now(), {});
    return berth::plan(std::move(graph), options);
  }

  // Items that make it fit, perhaps more than needed.
  std::optional<Items> gather(Ways ways) {
    Items items;
    std::vector<bool> used(gaps_.size(), false);
    std::size_t target = options_.budget_bytes;
    for (int round = 0; round < 64 && !patience_.over(); ++round) {
      ChangedGraph changed = change_graph(*graph_, items, options_.move_to);
      const Plan made = plan_of(std::move(changed.graph));
      const std::size_t bytes = bytes_of(made);
      if (bytes <= options_.budget_bytes) return items;
      // The live bytes fit, but the packing does not: lower the target.
      if (made.tables().arenas[options_.device].lower_bound_bytes <= target) target -= std::min(target, bytes - options_.budget_bytes);
      if (!close_gaps(made, changed.stands, target, ways, used, items) || items.size() > options_.most_items) return std::nullopt;
    }
    return std::nullopt;
  }

  // Closes gaps until the live bytes are within the target, as estimated without a new plan. False when no gap
  // helps.
  bool close_gaps(const Plan& made, const std::vector<Stand>& stands, std::size_t target, Ways ways, std::vector<bool>& used,
                  Items& items) {
    std::vector<std::size_t> live(stands.size(), 0);
    for (const Plan::Buffer& buffer : made.buffers())
      if (buffer.device == options_.device) change(live, buffer);
    for (std::size_t step = 1; step < live.size(); ++step) live[step] += live[step - 1];
    bool any = false;
    while (items.size() <= options_.most_items) {
      const auto peak = static_cast<std::size_t>(std::max_element(live.begin(), live.end()) - live.begin());
      if (live.empty() || live[peak] <= target) return any;
      base::checkpoint_now();
      const std::size_t chosen = best_gap(live, stands, peak, target, ways, used);
      if (chosen == gaps_.size()) return any;
      const BudgetItem& item = gaps_[chosen].item;
      // The other way to close this gap is no longer needed.
      for (std::size_t g = 0; g < gaps_.size(); ++g)
        if (gaps_[g].item.value == item.value && gaps_[g].item.after == item.after) used[g] = true;
      items.push_back(item);
      any = true;
      const auto [begin, end] = steps_of(item, stands);
      for (std::size_t step = begin; step < end; ++step) live[step] -= std::min(live[step], item.bytes);
    }
    return any;
  }

  // Differences may wrap, prefix sums do not.
  static void change(std::vector<std::size_t>& live, const Plan::Buffer& buffer) {
    live[buffer.life.begin] += buffer.bytes;
    if (buffer.life.end < live.size()) live[buffer.life.end] -= buffer.bytes;
  }

  static std::pair<std::size_t, std::size_t> steps_of(const BudgetItem& item, const std::vector<Stand>& stands) {
    const Idle idle = idle_of(item);
    const auto begin = std::upper_bound(stands.begin(), stands.end(), idle.begin);
    const auto end = std::lower_bound(stands.begin(), stands.end(), idle.end);
    return {static_cast<std::size_t>(begin - stands.begin()), static_cast<std::size_t>(end - stands.begin())};
  }

  // The gap with the best ratio of bytes freed above the target to cost.
  std::size_t best_gap(const std::vector<std::size_t>& live, const std::vector<Stand>& stands, std::size_t peak, std::size_t target,
                       Ways ways, const std::vector<bool>& used) const {
    std::vector<std::size_t> over(live.size() + 1, 0);  // prefix counts of steps above the target
    for (std::size_t step = 0; step < live.size(); ++step) over[step + 1] = over[step] + (live[step] > target ? 1 : 0);
    std::size_t best = gaps_.size();
    double best_worth = 0;
    for (std::size_t g = 0; g < gaps_.size(); ++g) {
      const BudgetItem& item = gaps_[g].item;
      const Idle idle = idle_of(item);
      if (used[g] || !allows(ways, item.kind) || stands[peak] <= idle.begin || stands[peak] >= idle.end) continue;
      const auto [begin, end] = steps_of(item, stands);
      const double frees = static_cast<double>(std::min(item.bytes, live[peak] - target)) * static_cast<double>(over[end] - over[begin]);
      if (const double worth = frees / gaps_[g].cost; worth > best_worth) {
        best_worth = worth;
        best = g;
      }
    }
    return best;
  }

  // Removes items that are not needed, the smallest first, until every item is; then returns the plan. Nothing
  // when time is over before that.
  std::optional<Plan> take_back(Items& items) const {
    std::stable_sort(items.begin(), items.end(), [](const BudgetItem& a, const BudgetItem& b) { return a.bytes < b.bytes; });
    for (std::size_t i = 0, kept = 0; kept < items.size() && !items.empty();) {
      if (patience_.over()) return std::nullopt;
      Items fewer = items;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      if (fits(fewer)) {
        items = std::move(fewer);
        kept = 0;  // an item that was needed may not be any more
      } else {
        ++i;
        ++kept;
      }
      if (i >= items.size()) i = 0;
    }
    std::sort(items.begin(), items.end(),
              [](const BudgetItem& a, const BudgetItem& b) { return a.after != b.after ? a.after < b.after : a.value < b.value; });
    return plan_of(change_graph(*graph_, items, options_.move_to).graph);
  }

  bool fits(const Items& items) const {
    Graph changed = change_graph(*graph_, items, options_.move_to).graph;
    if (bounds_in_order(changed, options_.plan, {})[options_.device] > options_.budget_bytes) return false;
    return bytes_of(plan_of(std::move(changed))) <= options_.budget_bytes;
  }

  const std::shared_ptr<const Graph> graph_;
  const BudgetOptions& options_;
  const std::vector<Gap> gaps_;
  const Patience& patience_;
};

void check(const Graph& graph, const BudgetOptions& options) {
  const std::string asked = text::join("a budget of ", text::bytes(options.budget_bytes));
  if (options.device >= graph.devices.size())
    base::refuse(text::join(asked, " on device ", options.device), text::join("the graph has ", graph.devices.size(), " devices"),
                 "use an index into Graph::devices");
  if (!(options.bandwidth > 0) || !std::isfinite(options.bandwidth))
    base::refuse(text::join(asked, " with a bandwidth of ", std::to_string(options.bandwidth)), "nothing could be moved",
                 "give bytes a second, above 0");
  if (options.plan.nodes || options.plan.after != nullptr || options.plan.parallel > 1)
    base::refuse(text::join(asked, options.plan.parallel > 1 ? " for a parallel plan" : " for a range of nodes"),
                 "proposals are for a whole graph whose nodes run in order", "leave that out");
  if (!options.plan.arenas.empty() || options.plan.max_chunk_bytes != SIZE_MAX)
    base::refuse(text::join(asked, " with arenas or chunks"), "a budget is for one arena", "give the arenas capacities instead");
  if (options.plan.capacity_bytes != SIZE_MAX)
    base::refuse(text::join(asked, " and a capacity"), "they say the same", "leave the capacity out");
  if (options.move_to == graph.devices[options.device])
    base::refuse(text::join(asked, ", moving to ", text::quoted(options.move_to)), "that is where it does not fit", "name another device");
}

BudgetOptions completed(const Graph& graph, const BudgetOptions& options) {
  BudgetOptions out = options;
  if (out.move_to.empty() && options.device < graph.devices.size())
    out.move_to = graph.devices[options.device] == "cpu:0" ? "elsewhere:0" : "cpu:0";
  return out;
}

// The graph in the order of the plan.
std::shared_ptr<const Graph> ordered(const Plan& plan) {
  const PlanTables& tables = plan.tables();
  return std::make_shared<const Graph>(tables.order.empty() ? plan.graph() : in_order(plan.graph(), tables.nodes, tables.order));
}

}  // namespace

}  // namespace internal::plan

BudgetAnswer plan_budget(Graph graph, const BudgetOptions& asked) {
  const auto start = plan::Clock::now();
  plan::check_time_limit(asked.plan.time_limit);
  BudgetOptions options = plan::completed(graph, asked);
  graph.validate();
  plan::check(graph, options);
  const plan::Patience patience(end_of(options.plan.time_limit, start), options.plan.cancel);
  const base::Allowance allowance({.until = patience.deadline()});
  Plan first = berth::plan(std::move(graph), options.plan);
  const std::shared_ptr<const Graph> in_order = plan::ordered(first);
  options.plan.order = "given";
  options.plan.on_better = nullptr;
  options.plan.time_limit = left_of(options.plan.time_limit, start);
  BudgetAnswer answer{first.tables().order.empty() ? std::move(first) : berth::plan(in_order, options.plan), false, 0, 0, {}};
  options.plan.on_strategy = nullptr;
  const std::size_t bytes = answer.plan.has_locations() ? answer.plan.tables().arenas[options.device].bytes : SIZE_MAX;
  answer.least_bytes = plan::least_of_nodes(answer.plan, options.device);
  answer.fits = bytes <= options.budget_bytes;
  if (answer.fits || !answer.plan.has_locations()) return answer;
  answer.over_bytes = bytes - options.budget_bytes;
  if (answer.least_bytes > options.budget_bytes) return answer;
  plan::Proposer proposer(in_order, options, plan::find_gaps(answer.plan, options), patience);
  for (const auto ways : {plan::Ways::recompute, plan::Ways::move, plan::Ways::both}) {
    std::optional<BudgetProposal> proposal = proposer.propose(ways);
    if (!proposal) continue;
    const bool known = std::any_of(answer.proposals.begin(), answer.proposals.end(),
                                   [&](const BudgetProposal& other) { return other.items == proposal->items; });
    if (!known) answer.proposals.push_back(std::move(*proposal));
  }
  return answer;
}

}  // namespace berth
