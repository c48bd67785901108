// SPDX-License-Identifier: Apache-2.0
#include "berth/plan/plan.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "berth/base/checked.h"
#include "berth/base/error.h"
#include "berth/plan/verify.h"
#include "plan/kept.h"
#include "plan/lives.h"
#include "plan/plan_maker.h"

namespace berth {

using namespace internal;
using namespace internal::plan;

namespace {

std::shared_ptr<const Graph> validated(std::shared_ptr<const Graph> graph) {
  if (graph == nullptr)
    throw ArgumentError(ErrorCode::invalid_argument, {"a plan of a null graph", "there is nothing to plan", "pass a graph"});
  graph->validate();
  return graph;
}

// No plan leaves the library unless the verifier accepts it.
void require_valid(const Graph& graph, const PlanTables& tables) {
  const std::vector<PlanProblem> problems = verify_plan(graph, tables);
  if (problems.empty()) return;
  std::string why = problems.front().text;
  if (problems.size() > 1) why += text::join(", and ", problems.size() - 1, " more");
  throw ArgumentError(ErrorCode::plan_invalid,
                      {text::join("a plan of ", graph.nodes.size(), " nodes"), why, "make the plan again from its graph"},
                      {{"problem", to_string(problems.front().kind)}});
}
}  // namespace

std::vector<Plan::Use> PlanMaker::find_uses(const Graph& graph, NodeRange nodes, const std::vector<plan::Life>& lives) {
  std::vector<Plan::Use> uses;
  uses.reserve(lives.size());
  for (const plan::Life& life : lives) uses.push_back({UINT32_MAX, {life.begin, life.end}, life.used()});
  for (NodeId n = nodes.begin; n < nodes.end; ++n)
    for (const ValueId v : graph.nodes[n].outputs)
      if (v != kNoValue) uses[v].writer = n;
  return uses;
}

Plan PlanMaker::make(std::shared_ptr<const Graph> graph, PlanTables tables, std::vector<plan::Life> lives,
                     const std::vector<PlanAttempt>& attempts, double time_ms) {
  std::vector<Plan::Use> uses = find_uses(*graph, tables.nodes, lives);
  (void)std::exchange(lives, {});  // freed before the verifier allocates its own memory
  return Plan(std::move(graph), std::move(tables), std::move(uses), attempts, time_ms);
}

Plan PlanMaker::with_orders(Plan plan, std::vector<OrderAttempt> orders) {
  plan.orders_ = std::move(orders);
  return plan;
}

Plan PlanMaker::with_attempts(Plan plan, std::vector<PlanAttempt> attempts) {
  plan.attempts_ = std::move(attempts);
  return plan;
}

Plan PlanMaker::with_trades(Plan plan, std::vector<EdgeTrade> trades) {
  plan.trades_ = std::move(trades);
  return plan;
}

Plan PlanMaker::with_time(Plan plan, double time_ms) {
  plan.time_ms_ = time_ms;
  return plan;
}

Plan::Plan(std::shared_ptr<const Graph> graph, PlanTables tables) : Plan(validated(std::move(graph)), std::move(tables), {}, {}, 0) {
  std::vector<Life> lives = find_lives(*graph_, tables_.nodes, tables_.alignment, tables_.order);
  add_kept(lives, *graph_, tables_.nodes, kept_in(tables_), tables_.parallel > 1);
  uses_ = PlanMaker::find_uses(*graph_, tables_.nodes, lives);
}

Plan::Plan(std::shared_ptr<const Graph> graph, PlanTables tables, std::vector<Use> uses, const std::vector<PlanAttempt>& attempts,
           double time_ms)
    : graph_(std::move(graph)), tables_(std::move(tables)), uses_(std::move(uses)), attempts_(attempts), time_ms_(time_ms) {
  require_valid(*graph_, tables_);
}

std::size_t Plan::peak_bytes() const noexcept {
  std::size_t sum = 0;
  for (const PlanArena& arena : tables_.arenas) sum += arena.bytes;
  return sum;
}

std::size_t Plan::lower_bound_bytes() const noexcept {
  std::size_t sum = 0;
  for (const PlanArena& arena : tables_.arenas) sum += arena.lower_bound_bytes;
  return sum;
}

std::size_t Plan::naive_bytes() const noexcept {
  std::size_t sum = 0;
  for (const PlanArena& arena : tables_.arenas) sum += arena.naive_bytes;
  return sum;
}

double Plan::ratio() const noexcept {
  const std::size_t bound = lower_bound_bytes();
  return bound == 0 ? 1.0 : static_cast<double>(peak_bytes()) / static_cast<double>(bound);
}

const ValueLocation& Plan::location(ValueId value) const {
  if (value >= tables_.locations.size())
    throw ArgumentError(ErrorCode::out_of_bounds,
                        {text::join("the location of value ", value), text::join("the graph has ", tables_.locations.size(), " values"),
                         "use the number that add_value gave, or Graph::find"},
                        {{"value", value}});
  return tables_.locations[value];
}

Plan::InplaceAnswer Plan::inplace_of(ValueId value) const {
  const ValueLocation& where = location(value);
  const Use& use = uses_[value];
  if (use.writer != UINT32_MAX && !use.used) return {Inplace::unused};
  if (where.reuse != Reuse::in_place && where.reuse != Reuse::identity) return {};
  const GraphNode& node = graph_->nodes[use.writer];
  for (const InplaceOption& option : node.inplace)
    if (node.outputs[option.output] == value && node.inputs[option.input] == where.with && !plan::is_ignored(node, option.input))
      return {Inplace::taken, option.input};
  return {};  // unreachable in a verified plan
}

std::vector<Plan::Buffer> Plan::buffers() const {
  std::vector<Buffer> buffers;
  std::vector<std::size_t> alignments;
  std::vector<bool> kept;
  for (ValueId v = 0; v < tables_.locations.size(); ++v) {
    const ValueLocation& where = tables_.locations[v];
    if (!where.planned() || where.extent_bytes == 0) continue;
    if (where.buffer >= buffers.size()) {
      buffers.resize(where.buffer + 1);
      alignments.resize(where.buffer + 1, 1);
      kept.resize(where.buffer + 1, false);
    }
    if (where.reuse == Reuse::kept) kept[where.buffer] = true;
    alignments[where.buffer] = std::max(alignments[where.buffer], where.alignment);
    Buffer& buffer = buffers[where.buffer];
    const NodeRange& life = uses_[v].life;
    const std::size_t end = where.offset + where.extent_bytes;
    if (buffer.first == kNoValue) {
      buffer = {graph_->values[v].device, where.offset, where.extent_bytes, life, v};
      continue;
    }
    const NodeId first = uses_[buffer.first].life.begin;
    if (life.begin < first || (life.begin == first && where.extent_bytes > location(buffer.first).extent_bytes)) buffer.first = v;
    const std::size_t top = std::max(end, buffer.offset + buffer.bytes);
    buffer.offset = std::min(buffer.offset, where.offset);
    buffer.bytes = top - buffer.offset;
    buffer.life = {std::min(buffer.life.begin, life.begin), std::max(buffer.life.end, life.end)};
  }
  for (std::size_t i = 0; i < buffers.size(); ++i)
    if (!kept[i]) buffers[i].bytes = try_align_up(buffers[i].bytes, alignments[i]).value_or(buffers[i].bytes);
  std::erase_if(buffers, [](const Buffer& buffer) { return buffer.first == kNoValue; });
  return buffers;
}

std::vector<Plan::Unplanned> Plan::unplanned() const {
  std::vector<Unplanned> out;
  for (ValueId v = 0; v < tables_.locations.size(); ++v)
    if (tables_.locations[v].reason != UnplannedReason::placed) out.push_back({v, tables_.locations[v].reason});
  return out;
}

std::map<UnplannedReason, std::size_t> Plan::unplanned_by_reason() const {
  std::map<UnplannedReason, std::size_t> counts;
  for (const Unplanned& one : unplanned()) ++counts[one.reason];
  return counts;
}

Plan::Peak Plan::at_peak(std::uint32_t device) const {
  const std::vector<Buffer> all = buffers();
  std::vector<std::size_t> change(tables_.nodes.end + std::size_t{1}, 0);  // differences may wrap, prefix sums
                                                                           // do not
  for (const Buffer& buffer : all) {
    if (buffer.device != device) continue;
    change[buffer.life.begin] += buffer.bytes;
    change[buffer.life.end] -= buffer.bytes;
  }
  Peak peak;
  std::size_t live = 0;
  for (NodeId n = 0; n < change.size(); ++n) {
    live += change[n];
    if (live > peak.bytes) peak = {n, node_at(n), live, {}};
  }
  for (const Buffer& buffer : all)
    if (buffer.device == device && buffer.life.begin <= peak.step && peak.step < buffer.life.end) peak.values.push_back(buffer.first);
  std::stable_sort(peak.values.begin(), peak.values.end(),
                   [&](ValueId a, ValueId b) { return location(a).extent_bytes > location(b).extent_bytes; });
  return peak;
}

std::string Plan::describe_bound(std::uint32_t device) const {
  const BoundProof& proof = tables_.arenas.at(device).proof;
  const auto [begin, end] = proof.steps;
  if (proof.by == BoundProof::By::unordered) return text::join(proof.values.size(), " buffers that may be in use at once");
  if (begin >= end) return "nothing to place";
  const std::string node = node_at(begin) < graph_->nodes.size() ? graph_->describe_node(node_at(begin)) : text::join("step ", begin);
  switch (proof.by) {
    case BoundProof::By::live: return text::join("live at ", node);
    case BoundProof::By::fixed: return text::join("fixed there at ", node);
    case BoundProof::By::search: return text::join("exhaustive search of steps ", begin, " to ", end - 1, ": none is a byte lower");
    case BoundProof::By::unsaid:
    case BoundProof::By::unordered: break;
  }
  return "not said";
}

std::vector<NodeId> Plan::nodes_in_order() const {
  std::vector<NodeId> out = tables_.order;
  for (NodeId n = tables_.nodes.begin; tables_.order.empty() && n < tables_.nodes.end; ++n) out.push_back(n);
  return out;
}

NodeRange Plan::life(ValueId value) const {
  (void)location(value);  // throws if out of bounds
  return uses_[value].life;
}

}  // namespace berth
