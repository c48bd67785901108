// SPDX-License-Identifier: Apache-2.0
#include "plan/report/panels.h"

#include <algorithm>
#include <tuple>

#include "base/text.h"

namespace berth::internal::plan {

namespace {

constexpr std::size_t kNamedValues = 3;

using BufferValues = std::vector<std::vector<ValueId>>;  // by buffer

BufferValues find_buffer_values(const PlanTables& tables) {
  BufferValues values_of;
  for (ValueId v = 0; v < tables.locations.size(); ++v) {
    const ValueLocation& location = tables.locations[v];
    if (!location.planned() || location.extent_bytes == 0) continue;
    if (location.buffer >= values_of.size()) values_of.resize(location.buffer + std::size_t{1});
    values_of[location.buffer].push_back(v);
  }
  return values_of;
}

// The values of a buffer besides the first.
std::string others_of(const Graph& graph, const std::vector<ValueId>& values, ValueId first) {
  std::string names;
  std::size_t named = 0;
  for (auto v = values.begin(); v != values.end() && named < kNamedValues; ++v) {
    if (*v == first) continue;
    names += text::join(names.empty() ? "" : ", ", text::printable(value_name(graph, *v), 60));
    ++named;
  }
  const std::size_t more = values.size() - 1 - named;
  return more == 0 ? names : text::join(names, " and ", more, " more");
}

std::string note_of(const Graph& graph, const std::vector<ValueId>& values, ValueId first) {
  std::string note;
  if (values.size() > 1) note = text::join("same bytes as ", others_of(graph, values, first));
  if (std::ranges::any_of(values, [&](ValueId v) { return graph.values[v].output; }))
    note += text::join(note.empty() ? "" : "; ", "an output");
  return note;
}

std::vector<Plan::Buffer> buffers_by_begin(const Plan& plan, std::uint32_t device) {
  std::vector<Plan::Buffer> buffers = plan.buffers();
  std::erase_if(buffers, [&](const Plan::Buffer& buffer) { return buffer.device != device; });
  std::ranges::stable_sort(buffers, {}, [](const Plan::Buffer& buffer) { return std::tuple(buffer.life.begin, buffer.offset); });
  return buffers;
}

html::MapBox box_of(const Plan::Buffer& buffer) {
  return {.begin = buffer.life.begin, .end = buffer.life.end, .offset = buffer.offset, .bytes = buffer.bytes};
}

html::AddressMap empty_map(const Plan& plan, std::uint32_t device) {
  const PlanArena& arena = plan.tables().arenas[device];
  return {.title = text::join(plan.graph().devices[device], ", ", text::bytes(arena.bytes)),
          .noun = "buffers",
          .one = "buffer",
          .begin = plan.tables().nodes.begin,
          .end = plan.tables().nodes.end,
          .bytes = arena.bytes,
          .marks = {{"lower bound", arena.lower_bound_bytes}}};
}

}  // namespace

std::string value_name(const Graph& graph, ValueId value) {
  const std::string& name = graph.values[value].name;
  return name.empty() ? text::join("value ", value) : name;
}

std::string step_name(const Graph& graph, NodeId node) {
  const GraphNode& step = graph.nodes[node];
  if (step.op.empty() && step.name.empty()) return text::join("node ", node);
  return text::join(step.op, step.op.empty() || step.name.empty() ? "" : " ", step.name);
}

std::vector<html::MapBox> plan_rects(const Plan& plan, std::uint32_t device) {
  const Graph& graph = plan.graph();
  const BufferValues values_of = find_buffer_values(plan.tables());
  std::vector<html::MapBox> rects;
  for (const Plan::Buffer& buffer : buffers_by_begin(plan, device)) {
    const std::vector<ValueId>& values = values_of[plan.location(buffer.first).buffer];
    html::MapBox& rect = rects.emplace_back(box_of(buffer));
    rect.name = value_name(graph, buffer.first);
    rect.note = note_of(graph, values, buffer.first);
  }
  return rects;
}

html::AddressMap plan_outline(const Plan& plan, std::uint32_t device) {
  html::AddressMap map = empty_map(plan, device);
  const std::vector<Plan::Buffer> buffers = buffers_by_begin(plan, device);
  map.boxes.reserve(buffers.size());
  for (const Plan::Buffer& buffer : buffers) map.boxes.push_back(box_of(buffer));
  return map;
}

html::AddressMap plan_map(const Plan& plan, std::uint32_t device) {
  html::AddressMap map = empty_map(plan, device);
  map.boxes = plan_rects(plan, device);
  for (NodeId n = plan.tables().nodes.begin; n < plan.tables().nodes.end; ++n)
    map.steps.push_back(step_name(plan.graph(), plan.node_at(n)));
  return map;
}

std::vector<html::AddressMap> plan_maps(const Plan& plan) {
  std::vector<html::AddressMap> maps;
  for (std::uint32_t device = 0; device < plan.tables().arenas.size(); ++device)
    if (plan.tables().arenas[device].bytes != 0) maps.push_back(plan_map(plan, device));
  return maps;
}

}  // namespace berth::internal::plan
