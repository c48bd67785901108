// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "plan/onnx/call.h"
#include "plan/onnx/functions.h"
#include "plan/onnx/model.h"
#include "plan/onnx/symbols.h"

// Type and shape inference: visits a model's nodes in order, resolves names, and infers the type of each value.
// Subgraphs are visited with their node, and see what is defined so far. Linear in the size of the model.
namespace berth::internal::plan::onnx {

// Stands for an absent value in a list of values.
inline constexpr std::uint32_t kAbsent = UINT32_MAX;

struct KnownValue {
  std::string_view name;
  TensorType type = {};
  std::optional<Contents> contents = {};
  bool constant = false;
};

// One node of the main graph, by indices into Inference::values().
struct Step {
  const ModelNode* node = nullptr;
  std::vector<std::uint32_t> inputs = {};  // kAbsent for those left out
  std::vector<std::uint32_t> outputs = {};
  std::vector<std::uint32_t> captured = {};  // values of enclosing graphs that its subgraphs read
  bool constant = false;
};

class Inference {
 public:
  Inference(const Model& model, Symbols& symbols, const Functions& functions, ExternalData& external, std::string_view name)
      : model_(model), symbols_(symbols), functions_(functions), external_(external), name_(name) {}

  // Throws what read_onnx throws for tensors, names and their order.
  void run();

  // Values of the main graph: its inputs first, then its initializers, then what its nodes write.
  const std::deque<KnownValue>& values() const noexcept { return values_; }
  const std::vector<Step>& steps() const noexcept { return steps_; }
  const std::vector<std::uint32_t>& outputs() const noexcept { return outputs_; }
  std::size_t graph_inputs() const noexcept {
    return graph_inputs_;
  }  // number of leading values that are
     // graph inputs
  std::size_t subgraph_values() const noexcept { return subgraph_values_; }

  bool is_function(const ModelNode& node) const { return functions_.is_call(node); }

  // A step in the form that rules take.
  Call call_of(const Step& step) const;

 private:
  // The names of one graph; `parent` is the scope of the enclosing graph.
  struct Scope {
    const ModelGraph* graph;
    Scope* parent;
    std::unordered_map<std::string_view, std::uint32_t> names = {};
    std::unordered_map<std::string_view, const DeclaredValue*> declared = {};
    std::unordered_map<std::string_view, const DeclaredValue*> declared_outputs = {};
    std::vector<std::uint32_t> captured = {};
    std::unordered_set<std::uint32_t> captured_set = {};
    bool pure = true;
  };

  void declare(Scope& scope);
  void require_utf8(std::string_view name, const char* what) const;
  void define(Scope& scope, KnownValue value, const char* what);
  void define_inputs(Scope& scope, const std::vector<TensorType>& given);
  void define_initializers(Scope& scope);
  void define_initializer(Scope& scope, const ModelTensor& tensor, const std::vector<std::int64_t>& dims, bool dense);
  std::uint32_t find(Scope& scope, std::string_view name);  // kAbsent when there is none
  std::uint32_t resolve(Scope& scope, const ModelNode& node, std::string_view name);
  [[noreturn]] void refuse_undefined(const Scope& scope, const ModelNode& node, std::string_view name) const;
  [[noreturn]] void refuse_contradiction(const ModelNode& node, const std::string& why) const;
  void check_attributes(const ModelNode& node);

  Step take_step(Scope& scope, const ModelNode& node);
  void define_outputs(Scope& scope, const ModelNode& node, Call& call, Step& step);
  bool is_visible_outside(const Scope& scope, std::string_view name) const;
  TensorType settle(const Scope& scope, std::string_view name, TensorType inferred);

  // Subgraphs: inference_subgraphs.cc. Both return whether all nodes in them are pure.
  bool infer_subgraphs(Scope& scope, Step& step, Call& call);
  bool walk(Scope& scope, const ModelGraph& graph, const std::vector<TensorType>& inputs, Step& step, std::vector<TensorType>& outputs);

  const Model& model_;
  Symbols& symbols_;
  const Functions& functions_;
  ExternalData& external_;
  std::string_view name_;
  std::deque<KnownValue> values_;  // a deque, as calls hold pointers to its elements
  std::vector<Step> steps_;
  std::vector<std::uint32_t> outputs_;
  std::size_t graph_inputs_ = 0;
  std::size_t subgraph_values_ = 0;
};

}  // namespace berth::internal::plan::onnx
