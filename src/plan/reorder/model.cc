// SPDX-License-Identifier: Apache-2.0
#include "plan/reorder/model.h"

#include <algorithm>

namespace berth::internal::plan {

namespace {

constexpr std::uint32_t kNoNode = UINT32_MAX;

void keep_each_once(std::vector<std::uint32_t>& items) {
  std::sort(items.begin(), items.end());
  items.erase(std::unique(items.begin(), items.end()), items.end());
}

class ModelBuilder {
 public:
  ModelBuilder(const Graph& graph, NodeRange nodes, const std::vector<Life>& lives, bool reuse)
      : graph_(graph),
        lives_(lives),
        reuse_(reuse),
        writer_(graph.values.size(), kNoNode),
        storage_of_(graph.values.size(), kNoNode),
        unit_of_(nodes.end, kNoNode),
        source_number_(nodes.end, kNoNode) {
    model_.nodes = nodes;
  }

  OrderModel build() && {
    for (NodeId n = model_.nodes.begin; n < model_.nodes.end; ++n) {
      add_node(n);
      for (const ValueId v : graph_.nodes[n].outputs)
        if (v != kNoValue) writer_[v] = n;
    }
    model_.readers = turned(model_.reads, model_.storages.size());
    model_.source_readers = turned(model_.sources, model_.source_of.size());
    model_.after = turned(model_.before, model_.units());
    return std::move(model_);
  }

 private:
  // A node with an output that no node of the range reads is no source: it would be live for longer than
  // necessary.
  bool is_source(const GraphNode& node) const {
    if (node.side_effects || node.outputs.empty()) return false;
    for (const ValueId v : node.inputs)
      if (v != kNoValue && writer_[v] != kNoNode) return false;
    return std::all_of(node.outputs.begin(), node.outputs.end(), [&](ValueId v) { return v != kNoValue && lives_[v].reads != 0; });
  }

  void add_node(NodeId n) {
    const GraphNode& node = graph_.nodes[n];
    const bool source = is_source(node);
    made_.clear();
    for (std::uint32_t o = 0; o < node.outputs.size(); ++o) add_output(node, o, source);
    if (source) {
      source_number_[n] = static_cast<std::uint32_t>(model_.source_of.size());
      model_.source_of.push_back(n);
      model_.source_makes.add_list(made_);
      return;
    }
    unit_of_[n] = static_cast<UnitId>(model_.units());
    model_.node_of.push_back(n);
    model_.makes.add_list(made_);
    add_reads(node);
    add_waits(n, node);
    add_in_place(node);
  }

  void add_output(const GraphNode& node, std::uint32_t o, bool source) {
    const ValueId v = node.outputs[o];
    if (v == kNoValue || !lives_[v].placed() || lives_[v].extent_bytes() == 0) return;
    storage_of_[v] = host_of(node, o);
    if (storage_of_[v] == kNoNode) {
      storage_of_[v] = static_cast<StorageId>(model_.storages.size());
      model_.storages.push_back({lives_[v].extent_bytes(), false, source});
      made_.push_back(storage_of_[v]);
    }
    model_.storages[storage_of_[v]].survives |= lives_[v].survives;
  }

  // The storage that an output is a view or an identity of.
  StorageId host_of(const GraphNode& node, std::uint32_t o) const {
    if (!reuse_) return kNoNode;
    const ValueId v = node.outputs[o];
    const auto host = [&](std::uint32_t input) {
      const ValueId other = node.inputs[input];
      const bool may = !is_ignored(node, input) && graph_.values[other].device == graph_.values[v].device && lives_[v].used();
      return may ? storage_of_[other] : kNoNode;
    };
    for (const ViewOption& option : node.views)
      if (option.of_input && option.output == o && host(option.input) != kNoNode) return host(option.input);
    for (const InplaceOption& option : node.inplace)
      if (option.identity && option.output == o && lives_[node.inputs[option.input]].bytes == lives_[v].bytes &&
          host(option.input) != kNoNode)
        return host(option.input);
    return kNoNode;
  }

  void add_reads(const GraphNode& node) {
    std::vector<std::uint32_t> reads;
    std::vector<std::uint32_t> sources;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId v = node.inputs[i];
      if (v == kNoValue) continue;
      if (storage_of_[v] != kNoNode && !is_ignored(node, i)) reads.push_back(storage_of_[v]);
      if (writer_[v] != kNoNode && source_number_[writer_[v]] != kNoNode) sources.push_back(source_number_[writer_[v]]);
    }
    keep_each_once(reads);
    keep_each_once(sources);
    model_.reads.add_list(reads);
    model_.sources.add_list(sources);
  }

  // Dependencies, ignored inputs included, as in the graph's own order; and the previous node with side
  // effects.
  void add_waits(NodeId n, const GraphNode& node) {
    std::vector<std::uint32_t> before;
    for (const ValueId v : node.inputs)
      if (v != kNoValue && writer_[v] != kNoNode && unit_of_[writer_[v]] != kNoNode) before.push_back(unit_of_[writer_[v]]);
    if (node.side_effects) {
      if (last_effect_ != kNoNode) before.push_back(last_effect_);
      last_effect_ = unit_of_[n];
    }
    keep_each_once(before);
    model_.before.add_list(before);
  }

  void add_in_place(const GraphNode& node) {
    std::vector<std::uint32_t> pairs;
    if (reuse_)
      for (const InplaceOption& option : node.inplace) {
        const ValueId output = node.outputs[option.output];
        const ValueId input = node.inputs[option.input];
        const StorageId made = storage_of_[output];
        const StorageId read = storage_of_[input];
        if (made == kNoNode || read == kNoNode || made == read || is_ignored(node, option.input) || !lives_[output].used()) continue;
        if (graph_.values[output].device != graph_.values[input].device) continue;
        if (model_.storages[made].bytes <= model_.storages[read].bytes) pairs.insert(pairs.end(), {made, read});
      }
    model_.in_place.add_list(pairs);
  }

  const Graph& graph_;
  const std::vector<Life>& lives_;
  const bool reuse_;
  OrderModel model_;
  std::vector<NodeId> writer_;  // of each value, in the range
  std::vector<StorageId> storage_of_;
  std::vector<UnitId> unit_of_;
  std::vector<std::uint32_t> source_number_;
  std::vector<std::uint32_t> made_;
  UnitId last_effect_ = kNoNode;
};

}  // namespace

void Lists::add_list(std::span<const std::uint32_t> items) {
  items_.insert(items_.end(), items.begin(), items.end());
  begins_.push_back(items_.size());
}

Lists turned(const Lists& lists, std::size_t count) {
  std::vector<std::vector<std::uint32_t>> sorted(count);
  for (std::size_t i = 0; i < lists.size(); ++i)
    for (const std::uint32_t item : lists[i]) sorted[item].push_back(static_cast<std::uint32_t>(i));
  Lists out;
  for (const std::vector<std::uint32_t>& list : sorted) out.add_list(list);
  return out;
}

OrderModel make_order_model(const Graph& graph, NodeRange nodes, const std::vector<Life>& lives, bool reuse) {
  return ModelBuilder(graph, nodes, lives, reuse).build();
}

std::vector<NodeId> nodes_in_order(const OrderModel& model, std::span<const UnitId> units) {
  std::vector<NodeId> order;
  order.reserve(model.nodes.end - model.nodes.begin);
  std::vector<bool> done(model.source_of.size(), false);
  const auto run_source = [&](std::uint32_t source) {
    if (!done[source]) order.push_back(model.source_of[source]);
    done[source] = true;
  };
  for (const UnitId u : units) {
    for (const std::uint32_t source : model.sources[u]) run_source(source);
    order.push_back(model.node_of[u]);
  }
  for (std::uint32_t source = 0; source < done.size(); ++source) run_source(source);
  return order;
}

}  // namespace berth::internal::plan
