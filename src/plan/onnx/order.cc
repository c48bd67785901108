// SPDX-License-Identifier: Apache-2.0
#include "plan/onnx/order.h"

#include <unordered_map>

#include "base/text.h"
#include "berth/plan/graph.h"

namespace berth::internal::plan::onnx {

namespace {

using Ids = std::unordered_map<std::string_view, ValueId>;

void add_reads(const ModelNode& node, const Ids& ids, GraphNode& out) {
  for (const std::string_view input : node.inputs) {
    if (const auto found = ids.find(input); found != ids.end()) out.inputs.push_back(found->second);
  }
  each_subgraph(node, [&](const ModelGraph& inner) {
    for (const ModelNode& below : inner.nodes) add_reads(below, ids, out);
  });
}

}  // namespace

std::string describe(const ModelNode& node) {
  return node.name.empty() ? text::join("a node (", text::printable(node.op), ")") : text::join("node ", text::quoted(node.name));
}

// Graph::validate tells the two cases apart, so a skeleton graph of the names alone is validated.
void refuse_order(const ModelGraph& graph, std::string_view name) {
  Graph skeleton;
  Ids ids;
  for (const ModelNode& node : graph.nodes) {
    for (const std::string_view output : node.outputs) {
      if (!output.empty() && ids.emplace(output, static_cast<ValueId>(skeleton.values.size())).second)
        skeleton.add_value({.name = std::string(output)});
    }
  }
  if (!ids.contains(name)) return;
  std::vector<bool> written(skeleton.values.size(), false);
  for (const ModelNode& node : graph.nodes) {
    GraphNode& out = skeleton.nodes[skeleton.add_node({.name = std::string(node.name), .op = std::string(node.op)})];
    add_reads(node, ids, out);
    for (const std::string_view output : node.outputs) {
      if (output.empty() || written[ids[output]]) continue;
      written[ids[output]] = true;
      out.outputs.push_back(ids[output]);
    }
  }
  skeleton.validate();
}

}  // namespace berth::internal::plan::onnx
