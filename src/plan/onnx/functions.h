// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "plan/onnx/model.h"

// The functions that a model defines, which its nodes may call like operators.
namespace berth::internal::plan::onnx {

class Functions {
 public:
  // Throws ArgumentError(graph_cycle) when functions are recursive.
  explicit Functions(const Model& model);

  bool is_call(const ModelNode& node) const { return find(node) != nullptr; }

  // Whether the node is deterministic, without side effects. Operators of other domains are assumed not to be.
  // Subgraphs among its attributes are not inspected.
  bool is_pure(const ModelNode& node) const;

 private:
  struct Entry {
    const ModelFunction* function;
    bool pure = true;
    std::vector<std::size_t> calls = {};
  };

  const Entry* find(const ModelNode& node) const;
  void scan(Entry& entry, const std::vector<ModelNode>& nodes);
  void visit(std::size_t start);
  [[noreturn]] void refuse_circle(const std::vector<std::size_t>& path, std::size_t again) const;

  std::vector<Entry> entries_;
  std::unordered_map<std::string_view, std::vector<std::size_t>> by_name_;
  std::vector<std::uint8_t> state_;  // of the depth-first search: 0 new, 1 on the path, 2 done
};

}  // namespace berth::internal::plan::onnx
