// SPDX-License-Identifier: Apache-2.0
#include "berth/base/json.h"
#include "berth/plan/parallel.h"
#include "berth/plan/plan.h"

namespace berth {

namespace {

void write_arenas(JsonWriter& json, const Plan& plan) {
  json.key("arenas").begin_array();
  for (std::size_t device = 0; device < plan.tables().arenas.size(); ++device) {
    const PlanArena& arena = plan.tables().arenas[device];
    json.begin_object().member("device", plan.graph().devices[device]).member("bytes", arena.bytes);
    json.member("lower_bound_bytes", arena.lower_bound_bytes).member("naive_bytes", arena.naive_bytes);
    json.key("proof").begin_object().member("by", to_string(arena.proof.by)).key("steps").begin_array();
    json.value(arena.proof.steps.begin).value(arena.proof.steps.end).end_array();
    if (arena.proof.by == BoundProof::By::unordered) json.member("buffers", arena.proof.values.size());
    json.end_object().end_object();
  }
  json.end_array();
}

void write_chunks(JsonWriter& json, const Plan& plan) {
  json.key("chunks").begin_array();
  for (const PlanChunk& chunk : plan.tables().chunks) {
    json.begin_object().member("name", chunk.name).member("device", plan.graph().devices[chunk.device]).member("offset", chunk.offset);
    json.member("bytes", chunk.bytes).key("capacity_bytes");
    chunk.capacity_bytes == SIZE_MAX ? json.null() : json.value(chunk.capacity_bytes);
    json.end_object();
  }
  json.end_array();
}

void write_attempts(JsonWriter& json, const Plan& plan) {
  json.key("strategies").begin_array();
  for (const PlanAttempt& attempt : plan.attempts()) {
    json.begin_object().member("strategy", attempt.strategy).key("peak_bytes");
    attempt.peak_bytes ? json.value(*attempt.peak_bytes) : json.null();
    json.member("time_ms", attempt.time_ms).member("note", attempt.note).end_object();
  }
  json.end_array();
}

void write_orders(JsonWriter& json, const Plan& plan) {
  json.key("orders").begin_array();
  for (const OrderAttempt& attempt : plan.orders()) {
    json.begin_object().member("order", attempt.order).member("lower_bound_bytes", attempt.lower_bound_bytes).key("peak_bytes");
    attempt.peak_bytes ? json.value(*attempt.peak_bytes) : json.null();
    json.end_object();
  }
  json.end_array();
}

// Every reason, so that a reader need not know which occur.
void write_unplanned(JsonWriter& json, const Plan& plan) {
  using enum UnplannedReason;
  const std::map<UnplannedReason, std::size_t> counts = plan.unplanned_by_reason();
  json.key("unplanned_by_reason").begin_object();
  for (const UnplannedReason reason : {external, dynamic, unknown_size, never_written, outside_range}) {
    const auto found = counts.find(reason);
    json.member(to_string(reason), found == counts.end() ? 0 : found->second);
  }
  json.end_object();
}

void write_trades(JsonWriter& json, const Plan& plan) {
  json.key("trades").begin_array();
  for (const EdgeTrade& one : plan.trades())
    json.begin_object()
        .member("edges", one.edges)
        .member("peak_bytes", one.peak_bytes)
        .member("longest_path", one.longest_path)
        .end_object();
  json.end_array();
}

// What only a parallel plan has.
void write_parallel(JsonWriter& json, const Plan& plan, PlanJson detail) {
  const PlanTables& tables = plan.tables();
  json.member("conservative", tables.conservative);
  json.member("longest_path_without_edges", longest_path(plan.graph(), tables.nodes));
  json.member("longest_path", longest_path(plan.graph(), tables.nodes, tables.edges));
  write_trades(json, plan);
  if (detail == PlanJson::summary) return;
  json.key("colours").begin_array();
  for (const std::uint32_t colour : tables.colours) json.value(colour);
  json.end_array().key("added_edges").begin_array();
  for (const PlanEdge& edge : tables.edges) json.begin_array().value(edge.before).value(edge.after).end_array();
  json.end_array();
}

void write_location(JsonWriter& json, const Plan& plan, ValueId v) {
  const ValueLocation& location = plan.tables().locations[v];
  json.begin_object().member("value", v).member("name", plan.graph().values[v].name);
  if (!location.planned()) {
    json.member("reason", to_string(location.reason)).end_object();
    return;
  }
  json.member("device", plan.graph().devices[plan.graph().values[v].device]).member("offset", location.offset);
  json.member("extent_bytes", location.extent_bytes).member("begin", plan.life(v).begin).member("end", plan.life(v).end);
  json.member("sharing", to_string(location.reuse)).key("with");
  location.with == kNoValue ? json.null() : json.value(location.with);
  json.key("slot");
  location.slot == kNoSlot ? json.null() : json.value(location.slot);
  json.member("buffer", location.buffer).end_object();
}

}  // namespace

void Plan::write_json(JsonWriter& json, PlanJson detail) const {
  json.member("buffers", buffers().size()).member("naive_bytes", naive_bytes()).member("lower_bound_bytes", lower_bound_bytes());
  json.key("peak_bytes");
  has_locations() ? json.value(peak_bytes()) : json.null();
  json.key("ratio");
  has_locations() ? json.value(ratio()) : json.null();
  json.member("strategy", strategy()).member("outcome", to_string(outcome())).member("unplanned", unplanned().size());
  write_unplanned(json, *this);
  json.member("time_ms", time_ms()).member("parallel", tables_.parallel).member("edges", tables_.edges.size());
  if (tables_.parallel > 1) write_parallel(json, *this, detail);
  write_arenas(json, *this);
  if (!tables_.chunks.empty()) write_chunks(json, *this);
  write_attempts(json, *this);
  if (!orders_.empty()) write_orders(json, *this);
  json.member("reordered", !tables_.order.empty());
  if (detail == PlanJson::summary) return;
  if (!tables_.order.empty()) {
    json.key("order").begin_array();
    for (const NodeId node : tables_.order) json.value(node);
    json.end_array();
  }
  json.key("placements").begin_array();
  for (ValueId v = 0; v < tables_.locations.size(); ++v) write_location(json, *this, v);
  json.end_array();
}

}  // namespace berth
