// SPDX-License-Identifier: Apache-2.0
#include "plan/onnx/functions.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/text.h"
#include "berth/base/error.h"

namespace berth::internal::plan::onnx {

namespace {

constexpr std::array<std::string_view, 6> kRandom = {"Bernoulli",        "Multinomial",   "RandomNormal",
                                                     "RandomNormalLike", "RandomUniform", "RandomUniformLike"};

// Dropout is random only in training mode, which its third input selects.
bool is_random(const ModelNode& node) {
  if (node.op == "Dropout") return node.inputs.size() > 2 && !node.inputs[2].empty();
  return std::ranges::find(kRandom, node.op) != kRandom.end();
}

}  // namespace

Functions::Functions(const Model& model) {
  for (const ModelFunction& function : model.functions) {
    by_name_[function.name].push_back(entries_.size());
    entries_.push_back({.function = &function});
  }
  for (Entry& entry : entries_) scan(entry, entry.function->nodes);
  state_.assign(entries_.size(), 0);
  for (std::size_t i = 0; i < entries_.size(); ++i) visit(i);
}

const Functions::Entry* Functions::find(const ModelNode& node) const {
  if (entries_.empty()) return nullptr;
  const auto named = by_name_.find(node.op);
  if (named == by_name_.end()) return nullptr;
  for (const std::size_t i : named->second) {
    const ModelFunction& function = *entries_[i].function;
    if (function.domain == node.domain && function.overload == node.overload) return &entries_[i];
  }
  return nullptr;
}

bool Functions::is_pure(const ModelNode& node) const {
  if (const Entry* const entry = find(node)) return entry->pure;
  return node.domain.empty() && !is_random(node);
}

void Functions::scan(Entry& entry, const std::vector<ModelNode>& nodes) {
  for (const ModelNode& node : nodes) {
    if (const Entry* const callee = find(node))
      entry.calls.push_back(static_cast<std::size_t>(callee - entries_.data()));
    else
      entry.pure = entry.pure && is_pure(node);
    each_subgraph(node, [&](const ModelGraph& graph) { scan(entry, graph.nodes); });
  }
}

// Depth-first search with an explicit stack, as chains of calls may be long. Callees are done before their
// callers.
void Functions::visit(std::size_t start) {
  if (state_[start] != 0) return;
  std::vector<std::size_t> path = {start};
  std::vector<std::size_t> next = {0};
  state_[start] = 1;
  while (!path.empty()) {
    Entry& entry = entries_[path.back()];
    if (next.back() == entry.calls.size()) {
      for (const std::size_t callee : entry.calls) entry.pure = entry.pure && entries_[callee].pure;
      state_[path.back()] = 2;
      path.pop_back();
      next.pop_back();
      continue;
    }
    const std::size_t callee = entry.calls[next.back()++];
    if (state_[callee] == 1) refuse_circle(path, callee);
    if (state_[callee] != 0) continue;
    state_[callee] = 1;
    path.push_back(callee);
    next.push_back(0);
  }
}

void Functions::refuse_circle(const std::vector<std::size_t>& path, std::size_t again) const {
  std::string names;
  for (auto at = std::ranges::find(path, again); at != path.end() && names.size() < 1000; ++at)
    names += text::join(names.empty() ? "" : ", ", text::printable(entries_[*at].function->name));
  throw ArgumentError(ErrorCode::graph_cycle,
                      {text::join("a model with the functions ", names), "each calls the next, and the last the first", "break the cycle"},
                      {{"nodes", names}});
}

}  // namespace berth::internal::plan::onnx
