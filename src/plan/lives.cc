// SPDX-License-Identifier: Apache-2.0
#include "plan/lives.h"

#include <algorithm>

#include "base/allowance.h"
#include "berth/base/checked.h"
#include "plan/look_ahead.h"

namespace berth::internal::plan {

namespace {

UnplannedReason reason_of(const GraphValue& value) {
  if (value.external) return UnplannedReason::external;
  if (value.dynamic) return UnplannedReason::dynamic;
  return value.size_bytes() ? UnplannedReason::placed : UnplannedReason::unknown_size;
}

std::size_t alignment_of_value(const GraphValue& value, std::size_t least) {
  const std::size_t own = value.alignment != 0 ? value.alignment : value.dtype ? alignment_of(*value.dtype) : 1;
  return std::max(own, least);
}

void begin_life(Life& life, const GraphValue& value, NodeId node, std::size_t least_alignment) {
  life.reason = reason_of(value);
  life.begin = node;
  life.end = node + 1;
  life.survives = value.output;
  if (!life.placed()) return;
  life.bytes = *value.size_bytes();
  life.alignment = alignment_of_value(value, least_alignment);
  (void)checked_align_up(life.bytes, life.alignment, "the bytes of a value with its alignment");  // its extent
}

}  // namespace

bool is_ignored(const GraphNode& node, std::size_t position) noexcept {
  return std::find(node.ignored_inputs.begin(), node.ignored_inputs.end(), position) != node.ignored_inputs.end();
}

std::vector<Life> find_lives(const Graph& graph, NodeRange nodes, std::size_t least_alignment, std::span<const NodeId> order) {
  std::vector<Life> lives(graph.values.size());
  for (ValueId v = 0; v < lives.size(); ++v)
    if (graph.values[v].external) lives[v].reason = UnplannedReason::external;
  for (NodeId n = 0; n < graph.nodes.size(); ++n) {
    base::checkpoint();
    look_ahead(graph, n, lives, graph.values);
    const GraphNode& node = graph.nodes[node_at(nodes, order, n)];
    const bool inside = n >= nodes.begin && n < nodes.end;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId v = node.inputs[i];
      if (v == kNoValue || is_ignored(node, i)) continue;
      Life& life = lives[v];
      if (inside) {
        ++life.reads;
        life.end = std::max(life.end, n + 1);
      } else if (n >= nodes.end && life.placed()) {
        life.survives = true;
      }
    }
    for (const ValueId v : node.outputs) {
      if (v == kNoValue) continue;
      if (inside)
        begin_life(lives[v], graph.values[v], n, least_alignment);
      else if (!graph.values[v].external)
        lives[v].reason = UnplannedReason::outside_range;
    }
  }
  for (Life& life : lives)
    if (life.placed() && life.survives) life.end = nodes.end;
  return lives;
}

}  // namespace berth::internal::plan
