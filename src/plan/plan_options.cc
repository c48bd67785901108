// SPDX-License-Identifier: Apache-2.0
#include "plan/plan_options.h"

#include "base/refuse.h"
#include "base/text.h"
#include "berth/base/checked.h"
#include "berth/base/error.h"
#include "plan/chunks.h"
#include "plan/in_order.h"
#include "plan/kept.h"
#include "plan/order.h"
#include "plan/reorder/orders.h"

namespace berth::internal::plan {

namespace {

std::string names() {
  std::string out = text::join("best, offsets, ", kSlots, ", ", kPlainSlots);
  for (const OffsetStrategy& strategy : offset_strategies()) out += text::join(", ", strategy.name);
  return out;
}

ChosenStrategies choose(std::string_view name) {
  ChosenStrategies chosen;
  const bool all = name == "best" || name == "offsets";
  for (const OffsetStrategy& strategy : offset_strategies())
    if (all || strategy.name == name) chosen.offsets.push_back(&strategy);
  chosen.slots = name == "best" || name == kSlots;
  chosen.plain = chosen.slots || name == kPlainSlots;
  if (chosen.offsets.empty() && !chosen.plain)
    base::refuse(text::join("planning with the strategy ", text::quoted(name)), "there is none of that name",
                 text::join("use one of ", names()));
  return chosen;
}

void check_slots(const Graph& graph, const PlanOptions& options, const ChosenStrategies& chosen) {
  if (options.match_range && (*options.match_range < 0 || *options.match_range > 1 << 20))
    base::refuse(text::join("a match range of ", *options.match_range), "it must be from 0 to 1,048,576", "leave it out to try 1 to 16");
  if (!chosen.plain && options.match_range)
    base::refuse(text::join("a match range with the strategy ", options.strategy), "only slots have one",
                 "use the strategy slots, or leave it out");
  if (!options.slots.empty() && !options.slots_are_free)
    base::refuse(text::join("planning with ", options.slots.size(), " slots of another plan"), "it is not said what lives in them",
                 "continue from that plan with after, or say slots_are_free when it has ended");
  if (!chosen.plain && !options.slots.empty())
    base::refuse(text::join("slots of an earlier plan with the strategy ", options.strategy), "only plans of slots can use them",
                 "use the strategy slots, or leave them out");
  for (const PlanSlot& slot : options.slots)
    if (slot.device >= graph.devices.size() || slot.bytes > kMaxBytes)
      base::refuse(ErrorCode::out_of_bounds, text::join("a slot of ", slot.bytes, " bytes on device ", slot.device),
                   text::join("the graph has ", graph.devices.size(), " devices"), "pass slots of a plan for the same devices");
}

void check_chunks(const Graph& graph, const PlanOptions& options, const ChosenStrategies& chosen) {
  if (!wants_chunks(options)) return;
  if (chosen.offsets.empty())
    base::refuse(text::join("arenas or chunks with the strategy ", options.strategy), "they are for plans of offsets",
                 "use the strategy offsets");
  if (options.max_chunk_bytes == 0) base::refuse("chunks of no bytes", "no value would fit", "give a size above 0");
  for (std::size_t i = 0; i < options.arenas.size(); ++i) {
    const ArenaOption& arena = options.arenas[i];
    if (arena.device >= graph.devices.size())
      base::refuse(ErrorCode::out_of_bounds, text::join("the arena ", text::quoted(arena.name), " on device ", arena.device),
                   text::join("the graph has ", graph.devices.size(), " devices"), "use an index into Graph::devices");
    for (std::size_t j = 0; j < i; ++j)
      if (options.arenas[j].name == arena.name)
        base::refuse(text::join("the arena ", text::quoted(arena.name)), "there is another of that name", "name each arena once");
  }
  for (ValueId v = 0; v < graph.values.size(); ++v)
    if (graph.values[v].fixed_offset)
      base::refuse(text::join(graph.describe_value(v), " at a fixed offset, with arenas or chunks"), "what is fixed is fixed in one arena",
                   "remove the fixed offset, or plan for one arena");
}

void check_order(const PlanOptions& options) {
  if (options.order == "given") return;
  std::string known = "given, best";
  bool found = options.order == "best";
  for (const OrderRule& rule : order_rules()) {
    known += text::join(", ", rule.name);
    found |= options.order == rule.name;
  }
  if (!found)
    base::refuse(text::join("planning in the order ", text::quoted(options.order)), "there is none of that name",
                 text::join("use one of ", known));
  if (options.parallel > 1)
    base::refuse(text::join("the order ", options.order, " for ", options.parallel, " parallel branches"),
                 "nodes that may run at once have no single order", "leave one of the two out");
}

}  // namespace

void check_time_limit(std::chrono::duration<double> limit) {
  if (limit != limit) base::refuse("a time limit that is not a number", "no time is so long", "use 0 or more seconds");
  if (limit < decltype(limit)::zero()) base::refuse("a negative time limit", "a time limit cannot be negative", "use 0 or more seconds");
}

ChosenStrategies check_options(const Graph& graph, const PlanOptions& options) {
  const ChosenStrategies chosen = choose(options.strategy);
  check_slots(graph, options, chosen);
  check_chunks(graph, options, chosen);
  check_order(options);
  if (options.nodes && (options.nodes->begin > options.nodes->end || options.nodes->end > graph.nodes.size()))
    base::refuse(ErrorCode::out_of_bounds, text::join("planning nodes ", options.nodes->begin, " to ", options.nodes->end),
                 text::join("the graph has ", graph.nodes.size()), "use a range inside, begin before end");
  if (options.parallel < 1 || options.parallel > 1 << 16)
    base::refuse(text::join(options.parallel, " parallel branches"), "there must be from 1 to 65,536", "use 1 for nodes that run in order");
  if (options.most_edges != 0 && options.parallel == 1)
    base::refuse(text::join("a plan for nodes in order with ", options.most_edges, " edges"), "only a parallel plan adds edges",
                 "say that nodes run in parallel, or leave the edges out");
  if (!is_power_of_two(options.alignment) || options.alignment > kMaxBytes / 2)
    base::refuse(ErrorCode::invalid_alignment, text::join("an alignment of ", options.alignment),
                 "it is not a power of two that memory could have", "use one, such as 64");
  if (chosen.plain && !chosen.slots && options.parallel > 1)
    base::refuse(text::join("the strategy ", options.strategy, " for ", options.parallel, " parallel branches"),
                 "its rule is for nodes that run in order", "use the strategy slots");
  check_after(graph, planned_nodes(graph, options), options);
  if (options.threads < 1 || options.threads > 256)
    base::refuse(text::join("planning by ", options.threads, " threads"), "there must be from 1 to 256",
                 "use 1, or as many as there are processors");
  return chosen;
}

}  // namespace berth::internal::plan

namespace berth {

using namespace internal;
using namespace internal::plan;

std::span<const PlanStrategy> plan_strategies() noexcept {
  static const std::vector<PlanStrategy> all = [] {
    std::vector<PlanStrategy> list;
    for (const plan::OffsetStrategy& strategy : plan::offset_strategies()) list.push_back({strategy.name, "offsets", strategy.does});
    list.push_back({plan::kSlots, "slots", "storages that values reuse one after another, by size"});
    list.push_back({plan::kPlainSlots, "slots", "the same by the plain rule of older planners, node by node"});
    return list;
  }();
  return all;
}

}  // namespace berth
