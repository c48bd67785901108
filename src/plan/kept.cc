// SPDX-License-Identifier: Apache-2.0
#include "plan/kept.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/allowance.h"
#include "base/refuse.h"
#include "base/text.h"
#include "berth/base/error.h"
#include "plan/chunks.h"

namespace berth::internal::plan {

namespace {

// The values that a node from `begin` on reads.
std::vector<bool> read_from(const Graph& graph, NodeId begin) {
  std::vector<bool> read(graph.values.size(), false);
  for (NodeId n = begin; n < graph.nodes.size(); ++n) {
    const GraphNode& node = graph.nodes[n];
    base::checkpoint();
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (const ValueId v = node.inputs[i]; v != kNoValue && !is_ignored(node, i)) read[v] = true;
  }
  return read;
}

std::string words(NodeRange nodes) { return text::join(nodes.begin, " to ", nodes.end); }

void check_turn(NodeRange nodes, const PlanTables& earlier) {
  if (nodes.begin < earlier.nodes.end)
    base::refuse(ErrorCode::out_of_bounds, text::join("planning nodes ", words(nodes), " after a plan of ", words(earlier.nodes)),
                 "they would run before it ends", text::join("begin at node ", earlier.nodes.end, ", or later"));
  if (nodes.begin == nodes.end)
    base::refuse(text::join("planning nodes ", words(nodes), " after another plan"), "there is nothing to plan",
                 "give a range with nodes in it");
}

}  // namespace

std::vector<KeptValue> find_kept(const Graph& graph, NodeId begin, const PlanTables& earlier) {
  const std::vector<bool> read = read_from(graph, begin);
  std::vector<KeptValue> kept;
  for (ValueId v = 0; v < earlier.locations.size(); ++v)
    if (earlier.locations[v].planned() && (read[v] || graph.values[v].output)) kept.push_back({v, earlier.locations[v]});
  return kept;
}

std::vector<KeptValue> kept_in(const PlanTables& tables) {
  std::vector<KeptValue> kept;
  for (ValueId v = 0; v < tables.locations.size(); ++v)
    if (tables.locations[v].reuse == Reuse::kept) kept.push_back({v, tables.locations[v]});
  return kept;
}

std::vector<KeptRange> kept_ranges(const Graph& graph, std::vector<KeptValue> kept) {
  std::sort(kept.begin(), kept.end(), [&](const KeptValue& a, const KeptValue& b) {
    const auto key = [&](const KeptValue& one) { return std::tuple(graph.values[one.value].device, one.location.offset, one.value); };
    return key(a) < key(b);
  });
  std::vector<KeptRange> ranges;
  std::vector<KeptRange> empty;
  for (const auto& [v, location] : kept) {
    const std::uint32_t device = graph.values[v].device;
    if (location.extent_bytes == 0) {
      empty.push_back({.device = device, .values = {v}, .offsets = {0}});
      continue;
    }
    if (ranges.empty() || ranges.back().device != device || ranges.back().end <= location.offset)
      ranges.push_back({device, location.slot, location.offset, location.offset});
    ranges.back().end = std::max(ranges.back().end, location.offset + location.extent_bytes);
    ranges.back().values.push_back(v);
    ranges.back().offsets.push_back(location.offset - ranges.back().begin);
  }
  ranges.insert(ranges.end(), empty.begin(), empty.end());
  return ranges;
}

void add_kept(std::vector<Life>& lives, const Graph& graph, NodeRange nodes, const std::vector<KeptValue>& kept, bool stay) {
  if (kept.empty()) return;
  const std::vector<bool> read = read_from(graph, nodes.end);
  for (const auto& [v, location] : kept) {
    Life& life = lives[v];  // knows its reads already
    life.reason = UnplannedReason::placed;
    life.survives = stay || read[v] || graph.values[v].output;
    life.alignment = location.alignment;
    life.bytes = *graph.values[v].size_bytes();
    life.begin = nodes.begin;
    life.end = life.survives ? nodes.end : std::max(life.end, nodes.begin + 1);
  }
}

std::vector<Life> find_lives(const Graph& graph, NodeRange nodes, const PlanOptions& options, std::span<const NodeId> order) {
  std::vector<Life> lives = find_lives(graph, nodes, options.alignment, order);
  if (options.after != nullptr) add_kept(lives, graph, nodes, find_kept(graph, nodes.begin, options.after->tables()), false);
  return lives;
}

std::vector<KeptRange> find_kept_ranges(const Graph& graph, NodeRange nodes, const PlanOptions& options) {
  if (options.after == nullptr) return {};
  return kept_ranges(graph, find_kept(graph, nodes.begin, options.after->tables()));
}

void check_after(const Graph& graph, NodeRange nodes, const PlanOptions& options) {
  if (options.after == nullptr) return;
  const Plan& earlier = *options.after;
  if (&earlier.graph() != &graph && earlier.graph() != graph)
    base::refuse("planning after a plan of another graph", "its values are not those of this graph", "pass the graph of that plan");
  if (!earlier.has_locations())
    base::refuse("planning after a plan without locations", text::join("its outcome is ", to_string(earlier.outcome())),
                 "give the earlier plan more capacity");
  if (options.parallel > 1)
    base::refuse(text::join("planning after another plan for ", options.parallel, " parallel branches"),
                 "what is kept has a last read only where nodes run in order",
                 "plan ranges for nodes in order, or the whole graph in parallel");
  check_turn(nodes, earlier.tables());
  if (wants_chunks(options) || !earlier.tables().chunks.empty())
    base::refuse("planning after another plan, with arenas or chunks", "what is kept lies in one arena of its device",
                 "plan every range for one arena");
  if (!options.slots.empty())
    base::refuse("planning with slots, and after another plan", "that plan has slots of its own", "leave the slots out");
}

}  // namespace berth::internal::plan
