// SPDX-License-Identifier: Apache-2.0
#include "plan/plain_slots.h"

#include <algorithm>
#include <utility>

#include "base/allowance.h"

namespace berth::internal::plan {

namespace {

class Pass {
 public:
  explicit Pass(const PlainTask& task) : task_(task), slots_(slots_task_), pending_(task.reuse.buffers.size(), 0) {
    for (ValueId v = 0; v < task.lives.size(); ++v)
      if (const std::uint32_t buffer = buffer_of(v); buffer != kNoBuffer)
        pending_[buffer] += task.lives[v].reads + (task.lives[v].survives ? 1U : 0U);
  }

  void step(const GraphNode& node) {
    request(node);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const std::uint32_t buffer = node.inputs[i] == kNoValue || is_ignored(node, i) ? kNoBuffer : buffer_of(node.inputs[i]);
      if (buffer != kNoBuffer && --pending_[buffer] == 0) slots_.release(buffer);
    }
    for (const ValueId v : node.outputs)
      if (v != kNoValue && buffer_of(v) != kNoBuffer && pending_[buffer_of(v)] == 0) slots_.release(buffer_of(v));
  }

  SlotsPacking result() && { return std::move(slots_).result(); }

 private:
  std::uint32_t buffer_of(ValueId v) const { return task_.reuse.values[v].buffer; }

  // Of equal outputs the last comes first, as in what it restates.
  void request(const GraphNode& node) {
    std::vector<std::uint32_t> fresh;
    for (auto v = node.outputs.rbegin(); v != node.outputs.rend(); ++v)
      if (*v != kNoValue && task_.reuse.values[*v].reuse == Reuse::own) fresh.push_back(buffer_of(*v));
    std::stable_sort(fresh.begin(), fresh.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return task_.reuse.buffers[a].bytes > task_.reuse.buffers[b].bytes; });
    for (const std::uint32_t buffer : fresh) slots_.request(buffer);
  }

  const PlainTask& task_;
  const std::vector<std::uint32_t> no_colours_ = {};
  const SlotsTask slots_task_ = {task_.reuse.buffers, task_.given, no_colours_, task_.match_range};
  BufferSlots slots_;
  std::vector<std::uint32_t> pending_;  // reads of each buffer, and one more where it survives
};

}  // namespace

ReuseResult find_plain_reuse(const Graph& graph, NodeRange nodes, const std::vector<Life>& lives, bool inplace,
                             std::span<const NodeId> order, std::span<const KeptRange> kept) {
  return find_reuse(graph, nodes, lives, {.inplace = inplace, .views = false, .joins = false, .smaller = false}, order, kept);
}

SlotsPacking pack_plain_slots(const PlainTask& task) {
  Pass pass(task);
  for (NodeId n = task.nodes.begin; n < task.nodes.end; ++n) {
    base::checkpoint();
    pass.step(task.graph.nodes[node_at(task.nodes, task.order, n)]);
  }
  return std::move(pass).result();
}

}  // namespace berth::internal::plan
