// SPDX-License-Identifier: Apache-2.0
#include "plan/reorder/orders.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

#include "base/allowance.h"
#include "plan/reorder/walk.h"

namespace berth::internal::plan {

namespace {

// ---- List orders: of the units that are ready, the one with the least key runs next.

// The priority of a list order, compared lexicographically.
using Key = std::tuple<std::int64_t, std::int64_t>;

struct Ready {
  StepCost cost;
  std::size_t live_bytes;  // before it runs
  UnitId unit;
  std::uint32_t since;  // number of units that had run when it became ready

  std::int64_t growth() const { return static_cast<std::int64_t>(cost.live_bytes) - static_cast<std::int64_t>(live_bytes); }
};

Key by_growth(const Ready& ready) { return {ready.growth(), static_cast<std::int64_t>(ready.cost.need_bytes - ready.live_bytes)}; }

Key by_growth_newest(const Ready& ready) { return {ready.growth(), -std::int64_t{ready.since}}; }

// Units that do not raise the live bytes run at once; the others in graph order, or the latest ready first.
Key shrinking_first(const Ready& ready) { return ready.growth() <= 0 ? Key{-1, ready.growth()} : Key{0, std::int64_t{ready.unit}}; }

Key shrinking_newest(const Ready& ready) { return ready.growth() <= 0 ? Key{-1, ready.growth()} : Key{0, -std::int64_t{ready.since}}; }

template <class Walk>
class ListOrder {
 public:
  ListOrder(const OrderModel& model, const Lists& before, const Lists& after, Key (*key)(const Ready&))
      : walk_(model), after_(after), key_(key), waits_(model.units()), since_(model.units(), kNotReady), keys_(model.units()) {
    for (UnitId u = 0; u < waits_.size(); ++u) waits_[u] = static_cast<std::uint32_t>(before[u].size());
  }

  std::vector<UnitId> run() {
    for (UnitId u = 0; u < waits_.size(); ++u)
      if (waits_[u] == 0) insert(u);
    while (!ready_.empty()) {
      base::checkpoint();
      const UnitId u = ready_.begin()->second;
      ready_.erase(ready_.begin());
      since_[u] = kNotReady;
      walk_.run(u, [&](UnitId other) { update(other); });
      order_.push_back(u);
      for (const UnitId next : after_[u])
        if (--waits_[next] == 0) insert(next);
    }
    return std::move(order_);
  }

 private:
  static constexpr std::uint32_t kNotReady = UINT32_MAX;

  void insert(UnitId u) {
    since_[u] = static_cast<std::uint32_t>(order_.size());
    keys_[u] = key_({walk_.preview(u), walk_.live_bytes(), u, since_[u]});
    ready_.emplace(keys_[u], u);
  }

  void update(UnitId u) {
    if (since_[u] == kNotReady) return;
    const Key fresh = key_({walk_.preview(u), walk_.live_bytes(), u, since_[u]});
    if (fresh == keys_[u]) return;
    ready_.erase({keys_[u], u});
    keys_[u] = fresh;
    ready_.emplace(fresh, u);
  }

  Walk walk_;
  const Lists& after_;
  Key (*key_)(const Ready&);
  std::vector<std::uint32_t> waits_;
  std::vector<std::uint32_t> since_;
  std::vector<Key> keys_;
  std::set<std::pair<Key, UnitId>> ready_;
  std::vector<UnitId> order_;
};

template <Key (*key)(const Ready&)>
std::vector<UnitId> list(const OrderModel& model) {
  return ListOrder<ForwardWalk>(model, model.before, model.after, key).run();
}

template <Key (*key)(const Ready&)>
std::vector<UnitId> backward_list(const OrderModel& model) {
  std::vector<UnitId> order = ListOrder<BackwardWalk>(model, model.after, model.before, key).run();
  std::reverse(order.begin(), order.end());
  return order;
}

// ---- Depth first: what a unit needs runs just before it, one operand to its end and then the next.

using Operands = std::vector<std::vector<UnitId>>;

std::vector<UnitId> depth_first_of(const Lists& before, const Lists& after, const Operands& operands) {
  std::vector<UnitId> order;
  std::vector<std::uint8_t> seen(before.size(), 0);
  struct Visit {
    UnitId unit;
    std::size_t next = 0;
  };
  std::vector<Visit> path;
  for (UnitId root = 0; root < before.size(); ++root) {
    if (!after[root].empty()) continue;
    path.push_back({root});
    seen[root] = 1;
    while (!path.empty()) {
      base::checkpoint();
      Visit& top = path.back();
      if (top.next == operands[top.unit].size()) {
        order.push_back(top.unit);
        path.pop_back();
        continue;
      }
      const UnitId operand = operands[top.unit][top.next++];
      if (seen[operand] != 0) continue;
      seen[operand] = 1;
      path.push_back({operand});
    }
  }
  return order;
}

Operands as_listed(const Lists& before) {
  Operands operands(before.size());
  for (std::size_t u = 0; u < operands.size(); ++u) operands[u].assign(before[u].begin(), before[u].end());
  return operands;
}

std::vector<UnitId> depth_first(const OrderModel& model) { return depth_first_of(model.before, model.after, as_listed(model.before)); }

// As in the Sethi-Ullman rule for trees: first the operand whose computation needs most beyond what it leaves
// behind.
std::vector<UnitId> depth_first_heavy(const OrderModel& model) {
  Operands operands = as_listed(model.before);
  std::vector<double> needs(model.units(), 0);
  std::vector<double> leaves(model.units(), 0);
  for (UnitId u = 0; u < model.units(); ++u) {
    for (const StorageId s : model.makes[u]) leaves[u] += static_cast<double>(model.storages[s].bytes);
    std::stable_sort(operands[u].begin(), operands[u].end(),
                     [&](UnitId a, UnitId b) { return needs[a] - leaves[a] > needs[b] - leaves[b]; });
    double held = 0;
    for (const UnitId operand : operands[u]) {
      needs[u] = std::max(needs[u], held + needs[operand]);
      held += leaves[operand];
    }
    needs[u] = std::max(needs[u], held + leaves[u]);
  }
  return depth_first_of(model.before, model.after, operands);
}

// What a unit makes is consumed just after it: depth first from the other end.
std::vector<UnitId> breadth_last(const OrderModel& model) {
  std::vector<UnitId> order = depth_first_of(model.after, model.before, as_listed(model.after));
  std::reverse(order.begin(), order.end());
  return order;
}

std::vector<UnitId> as_given(const OrderModel& model) {
  std::vector<UnitId> order(model.units());
  std::iota(order.begin(), order.end(), UnitId{0});
  return order;
}

constexpr OrderRule kRules[] = {
    {"late_sources", "as given, but what reads nothing runs just before it is needed", as_given},
    {"list", "what grows the live bytes least", list<by_growth>},
    {"list_newest", "what grows the live bytes least, then what became ready last", list<by_growth_newest>},
    {"shrink", "what does not grow the live bytes at once, the rest as given", list<shrinking_first>},
    {"shrink_newest", "what does not grow the live bytes at once, then what became ready last", list<shrinking_newest>},
    {"backward", "from the end: what grows the live bytes least", backward_list<by_growth>},
    {"backward_newest", "from the end: what grows the live bytes least, then what became ready last", backward_list<by_growth_newest>},
    {"backward_shrink", "from the end: what does not grow the live bytes at once, then what became ready last",
     backward_list<shrinking_newest>},
    {"depth_first", "the operands of a node just before it, as it lists them", depth_first},
    {"depth_first_heavy", "the operands of a node just before it, the most needy first", depth_first_heavy},
    {"forward_depth", "the readers of a node just after it", breadth_last},
};

}  // namespace

std::span<const OrderRule> order_rules() noexcept { return kRules; }

}  // namespace berth::internal::plan
