// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "plan/onnx/model.h"

// The functions that a model brings along, which its nodes may call like operators.
namespace berth::internal::plan::onnx {

class Functions {
 public:
  // Throws ArgumentError(graph_cycle) when functions call one another in a circle.
  explicit Functions(const Model& model);

  bool is_call(const ModelNode& node) const { return find(node) != nullptr; }

  // Whether the node computes the same from the same inputs each time. Operators of other domains are not trusted to. Graphs among its
  // attributes are not looked into.
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
  std::vector<std::uint8_t> state_;  // of the search: 0 new, 1 on the path, 2 done
};

}  // namespace berth::internal::plan::onnx
