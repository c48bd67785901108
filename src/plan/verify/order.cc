// SPDX-License-Identifier: Apache-2.0
#include "plan/verify/order.h"

#include <algorithm>
#include <array>

#include "base/allowance.h"

namespace berth::internal::plan::verify {

namespace {

// The ancestors of a node among the nodes of a block.
using Row = std::array<std::uint64_t, 8>;
constexpr std::size_t kBlock = 64 * std::tuple_size_v<Row>;

}  // namespace

Order::Order(const Graph& graph, NodeRange nodes, const std::vector<PlanEdge>& edges)
    : first_(nodes.begin), before_(nodes.end - nodes.begin) {
  std::vector<NodeId> writer(graph.values.size(), UINT32_MAX);
  for (NodeId n = nodes.begin; n < nodes.end; ++n)
    for (const ValueId v : graph.nodes[n].outputs)
      if (v != kNoValue) writer[v] = n;
  for (NodeId n = nodes.begin; n < nodes.end; ++n) {
    const GraphNode& node = graph.nodes[n];
    for (std::uint32_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId v = node.inputs[i];
      // An ignored input is no dependency.
      if (v != kNoValue && writer[v] < n && std::count(node.ignored_inputs.begin(), node.ignored_inputs.end(), i) == 0)
        before_[n - first_].push_back(writer[v]);
    }
  }
  for (const PlanEdge& edge : edges) before_[edge.after - first_].push_back(edge.before);
}

std::vector<bool> Order::implied(const std::vector<PlanEdge>& pairs) const {
  std::vector<bool> answers(pairs.size(), false);
  std::vector<std::size_t> sorted;
  for (std::size_t i = 0; i < pairs.size(); ++i)
    if (pairs[i].before < pairs[i].after) sorted.push_back(i);
  std::sort(sorted.begin(), sorted.end(), [&](std::size_t a, std::size_t b) { return pairs[a].before < pairs[b].before; });
  std::vector<std::size_t> block;
  std::size_t sources = 0;
  for (const std::size_t i : sorted) {
    const bool is_new = block.empty() || pairs[block.back()].before != pairs[i].before;
    if (is_new && sources == kBlock) {
      judge(pairs, block, answers);
      block.clear();
      sources = 0;
    }
    sources += is_new ? 1 : 0;
    block.push_back(i);
  }
  if (!block.empty()) judge(pairs, block, answers);
  return answers;
}

// REQUIRES: the pairs of the block are sorted by their first nodes, of which there are at most kBlock.
void Order::judge(const std::vector<PlanEdge>& pairs, const std::vector<std::size_t>& block, std::vector<bool>& answers) const {
  const NodeId low = pairs[block.front()].before;
  NodeId high = low;
  std::vector<NodeId> sources;
  for (const std::size_t i : block) {
    high = std::max(high, pairs[i].after);
    if (sources.empty() || sources.back() != pairs[i].before) sources.push_back(pairs[i].before);
  }
  std::vector<Row> rows(high - low + std::size_t{1}, Row{});
  std::size_t next = 0;  // the first source after the node
  for (NodeId n = low; n <= high; ++n) {
    base::checkpoint();
    Row& row = rows[n - low];
    for (const NodeId one : before_[n - first_])
      for (std::size_t word = 0; one >= low && word < row.size(); ++word) row[word] |= rows[one - low][word];
    if (next == sources.size() || sources[next] != n) continue;
    row[next / 64] |= std::uint64_t{1} << (next % 64);  // each precedes itself here: no pair asks for that
    ++next;
  }
  std::size_t source = 0;
  for (const std::size_t i : block) {
    while (sources[source] != pairs[i].before) ++source;
    answers[i] = (rows[pairs[i].after - low][source / 64] >> (source % 64) & 1) != 0;
  }
}

}  // namespace berth::internal::plan::verify
