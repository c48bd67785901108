// SPDX-License-Identifier: Apache-2.0
#include "plan/budget/changed_graph.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "base/text.h"
#include "berth/base/error.h"

namespace berth::internal::plan {

namespace {

class Changer {
 public:
  Changer(const Graph& graph, std::span<const BudgetItem> items, std::string_view move_to)
      : graph_(graph), items_(items), out_value_(items.size(), kNoValue), current_(graph.values.size()) {
    std::iota(current_.begin(), current_.end(), ValueId{0});
    out_.graph = graph;
    out_.graph.nodes.clear();
    for (const GraphValue& value : graph.values)
      if (!value.name.empty()) names_.insert(value.name);
    for (std::size_t i = 0; i < items.size(); ++i) {
      before_.emplace(items[i].before, i);
      after_.emplace(items[i].after, i);
    }
    const bool moves = std::any_of(items.begin(), items.end(), [](const BudgetItem& item) { return item.kind == BudgetItem::Kind::move; });
    if (moves) other_device_ = out_.graph.add_device(move_to);
  }

  ChangedGraph run() && {
    for (NodeId n = 0; n <= graph_.nodes.size(); ++n) {
      for (auto at = before_.find(n); at != before_.end() && at->first == n; ++at) bring_back(at->second);
      if (n == graph_.nodes.size()) break;
      GraphNode node = graph_.nodes[n];
      for (ValueId& v : node.inputs)
        if (v != kNoValue) v = current_[v];
      add(std::move(node), 2 * Stand{n} + 1);
      for (auto at = after_.find(n); at != after_.end() && at->first == n; ++at)
        if (items_[at->second].kind == BudgetItem::Kind::move) move_out(at->second);
    }
    // The caller reads the last version of each output.
    for (ValueId v = 0; v < current_.size(); ++v)
      if (current_[v] != v && graph_.values[v].output) {
        out_.graph.values[v].output = false;
        out_.graph.values[current_[v]].output = true;
      }
    return std::move(out_);
  }

 private:
  void add(GraphNode node, Stand stand) {
    out_.graph.add_node(std::move(node));
    out_.stands.push_back(stand);
  }

  // A new value with the same type, on some device.
  ValueId add_like(ValueId v, std::string_view what, std::uint32_t device) {
    GraphValue value = graph_.values[v];
    value.output = false;
    value.fixed_offset.reset();
    value.preferred_offset.reset();
    value.device = device;
    if (!value.name.empty()) {
      std::string name = text::join(value.name, "@", what);
      while (!names_.insert(name).second) name += '\'';
      value.name = std::move(name);
    }
    return out_.graph.add_value(std::move(value));
  }

  void move_out(std::size_t i) {
    const BudgetItem& item = items_[i];
    const ValueId v = item.value;
    out_value_[i] = add_like(v, "out", other_device_);
    add({.name = {}, .op = "MoveOut", .inputs = {current_[v]}, .outputs = {out_value_[i]}}, 2 * Stand{item.after} + 2);
  }

  void bring_back(std::size_t i) {
    const BudgetItem& item = items_[i];
    if (item.kind == BudgetItem::Kind::recompute) return run_again(item);
    const ValueId back = add_like(item.value, "back", graph_.values[item.value].device);
    add({.name = {}, .op = "MoveBack", .inputs = {out_value_[i]}, .outputs = {back}}, 2 * Stand{item.before});
    current_[item.value] = back;
  }

  // Copies of an item's nodes, with the values that they pass on and the item's own; their other outputs are
  // left out.
  void run_again(const BudgetItem& item) {
    std::unordered_set<ValueId> wanted = {item.value};
    for (const NodeId n : item.again)
      for (const ValueId v : graph_.nodes[n].inputs)
        if (v != kNoValue) wanted.insert(v);
    std::unordered_map<ValueId, ValueId> fresh;
    for (const NodeId n : item.again) {
      GraphNode node = graph_.nodes[n];
      if (!node.name.empty()) node.name += "@again";
      for (ValueId& v : node.inputs)
        if (v != kNoValue) v = fresh.contains(v) ? fresh[v] : current_[v];
      for (ValueId& v : node.outputs) {
        if (v == kNoValue) continue;
        const bool use = wanted.contains(v);
        if (use) fresh[v] = add_like(v, "again", graph_.values[v].device);
        v = use ? fresh[v] : kNoValue;
      }
      std::erase_if(node.inplace, [&](const InplaceOption& option) { return node.outputs[option.output] == kNoValue; });
      std::erase_if(node.views, [&](const ViewOption& option) { return node.outputs[option.output] == kNoValue; });
      add(std::move(node), 2 * Stand{item.before});
    }
    current_[item.value] = fresh.at(item.value);
  }

  const Graph& graph_;
  const std::span<const BudgetItem> items_;
  std::multimap<NodeId, std::size_t> before_;  // items by the node they precede, in their order
  std::multimap<NodeId, std::size_t> after_;
  std::vector<ValueId> out_value_;  // of each item that moves: its value on the other device
  std::vector<ValueId> current_;    // the current version of each value of the graph
  std::unordered_set<std::string> names_;
  std::uint32_t other_device_ = 0;
  ChangedGraph out_;
};

}  // namespace

ChangedGraph change_graph(const Graph& graph, std::span<const BudgetItem> items, std::string_view move_to) {
  return Changer(graph, items, move_to).run();
}

}  // namespace berth::internal::plan

namespace berth::internal::plan {

namespace {

void require_item(const Graph& graph, const BudgetItem& item, const std::vector<NodeId>& writer) {
  const auto refuse = [&](std::string why) {
    throw ArgumentError(ErrorCode::invalid_argument, {text::join("applying ", to_string(item.kind), " of value ", item.value),
                                                      std::move(why), "use items that plan_budget gave for this graph"});
  };
  if (item.value >= graph.values.size()) refuse(text::join("the graph has ", graph.values.size(), " values"));
  const NodeId made = writer[item.value];
  if (made == UINT32_MAX || item.after < made || item.before <= item.after || item.before > graph.nodes.size())
    refuse(text::join("it is not live between node ", item.after, " and node ", item.before));
  if (item.kind == BudgetItem::Kind::move) return;
  if (std::find(item.again.begin(), item.again.end(), made) == item.again.end() || !std::is_sorted(item.again.begin(), item.again.end()))
    refuse("the nodes that run again do not make it");
  for (const NodeId n : item.again)
    if (n >= item.before || graph.nodes[n].side_effects) refuse(text::join("node ", n, " cannot run again there"));
}

}  // namespace

}  // namespace berth::internal::plan

namespace berth {

using namespace internal::plan;

std::string_view to_string(BudgetItem::Kind kind) noexcept { return kind == BudgetItem::Kind::move ? "move" : "recompute"; }

Graph with_items(const Graph& graph, std::span<const BudgetItem> items, std::string_view move_to) {
  graph.validate();
  std::vector<NodeId> writer(graph.values.size(), UINT32_MAX);
  for (NodeId n = 0; n < graph.nodes.size(); ++n)
    for (const ValueId v : graph.nodes[n].outputs)
      if (v != kNoValue) writer[v] = n;
  for (const BudgetItem& item : items) require_item(graph, item, writer);
  Graph changed = change_graph(graph, items, move_to).graph;
  changed.validate();
  return changed;
}

}  // namespace berth
