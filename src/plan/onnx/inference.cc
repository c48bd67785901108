// SPDX-License-Identifier: Apache-2.0
#include "plan/onnx/inference.h"

#include <algorithm>

#include "base/allowance.h"
#include "base/text.h"
#include "berth/base/error.h"
#include "plan/onnx/fold.h"
#include "plan/onnx/order.h"
#include "plan/onnx/rules/rules.h"

namespace berth::internal::plan::onnx {

void Inference::run() {
  Scope scope{.graph = &model_.graph, .parent = nullptr};
  declare(scope);
  define_inputs(scope, {});
  graph_inputs_ = values_.size();
  define_initializers(scope);
  base::reserve(steps_, model_.graph.nodes.size());
  for (const ModelNode& node : model_.graph.nodes) {
    base::checkpoint();
    steps_.push_back(take_step(scope, node));
  }
  const ModelNode end{.op = "graph output"};
  for (const DeclaredValue& output : model_.graph.outputs) outputs_.push_back(resolve(scope, end, output.name));
}

void Inference::declare(Scope& scope) {
  base::take((scope.graph->nodes.size() + scope.graph->initializers.size()) * sizeof(void*));
  scope.names.reserve(scope.graph->nodes.size() + scope.graph->initializers.size());
  base::take((scope.graph->value_info.size() + scope.graph->outputs.size()) * base::kHashEntry);
  for (const DeclaredValue& value : scope.graph->value_info) scope.declared[value.name] = &value;
  for (const DeclaredValue& value : scope.graph->outputs) scope.declared_outputs[value.name] = &value;
}

// Names that are not UTF-8 would be ambiguous in the files that a plan is written to.
void Inference::require_utf8(std::string_view name, const char* what) const {
  for (std::string_view rest = name; !rest.empty();) {
    const std::size_t length = text::utf8_length(rest);
    if (length == 0)
      throw FormatError(
          ErrorCode::format_error,
          {text::join(what, " ", text::quoted(name), " in ", text::printable(name_)), "its name is not UTF-8", "give it another name"},
          {{"value", text::printable(name)}});
    rest.remove_prefix(length);
  }
}

void Inference::define(Scope& scope, KnownValue value, const char* what) {
  require_utf8(value.name, what);
  base::take(sizeof(KnownValue) + base::kHashEntry + value.type.dims.size() * sizeof(std::int64_t));
  if (value.contents) base::take(2 * (value.contents->ints.size() * sizeof(std::int64_t) + value.contents->floats.size() * sizeof(float)));
  const auto index = static_cast<std::uint32_t>(values_.size());
  if (!scope.names.emplace(value.name, index).second)
    throw ArgumentError(ErrorCode::duplicate_value,
                        {text::join(what, " ", text::quoted(value.name), " in ", text::printable(name_)), "another value has that name",
                         "give each value a name of its own"},
                        {{"value", text::printable(value.name)}});
  values_.push_back(std::move(value));
}

// An input that also has an initializer is a weight, which a caller may replace by one of the same shape.
void Inference::define_inputs(Scope& scope, const std::vector<TensorType>& given) {
  base::take((scope.graph->initializers.size() + scope.graph->sparse_initializers.size()) * base::kHashEntry);
  std::unordered_set<std::string_view> weights;
  for (const ModelTensor& tensor : scope.graph->initializers) weights.insert(tensor.name);
  for (const SparseModelTensor& sparse : scope.graph->sparse_initializers) weights.insert(sparse.values.name);
  std::unordered_set<std::string_view> seen;
  for (std::size_t i = 0; i < scope.graph->inputs.size(); ++i) {
    const DeclaredValue& input = scope.graph->inputs[i];
    TensorType type = symbols_.resolve(input);
    const bool better = i < given.size() && !type.complete() && (given[i].complete() || !type.ranked);
    if (better && (type.elem == 0 || type.elem == given[i].elem)) type = given[i];
    const bool weight = weights.contains(input.name) && seen.insert(input.name).second;
    if (!weight) define(scope, {.name = input.name, .type = std::move(type)}, "the input");
  }
}

void Inference::define_initializers(Scope& scope) {
  for (const ModelTensor& tensor : scope.graph->initializers) {
    check_tensor(tensor, external_, name_);
    define_initializer(scope, tensor, tensor.dims, true);
  }
  for (const SparseModelTensor& sparse : scope.graph->sparse_initializers) {
    check_sparse(sparse, external_, name_);
    define_initializer(scope, sparse.values, sparse.dims, false);
  }
}

void Inference::define_initializer(Scope& scope, const ModelTensor& tensor, const std::vector<std::int64_t>& dims, bool dense) {
  define(scope,
         {.name = tensor.name,
          .type = TensorType::of(tensor.elem, dims),
          .contents = dense ? read_contents(tensor) : std::nullopt,
          .constant = true},
         "the initializer");
}

// Every graph between the reader and the definition captures the value.
std::uint32_t Inference::find(Scope& scope, std::string_view name) {
  Scope* owner = &scope;
  auto found = owner->names.find(name);
  while (found == owner->names.end()) {
    owner = owner->parent;
    if (owner == nullptr) return kAbsent;
    found = owner->names.find(name);
  }
  for (Scope* reader = &scope; reader != owner; reader = reader->parent) {
    if (!reader->captured_set.insert(found->second).second) continue;
    base::take(base::kHashEntry);
    base::append(reader->captured, found->second);
  }
  return found->second;
}

std::uint32_t Inference::resolve(Scope& scope, const ModelNode& node, std::string_view name) {
  const std::uint32_t found = find(scope, name);
  if (found == kAbsent) refuse_undefined(scope, node, name);
  return found;
}

void Inference::refuse_undefined(const Scope& scope, const ModelNode& node, std::string_view name) const {
  for (const Scope* around = &scope; around != nullptr; around = around->parent) refuse_order(*around->graph, name);
  throw ArgumentError(ErrorCode::undefined_value,
                      {text::join(describe(node), " of ", text::printable(name_), " reads ", text::quoted(name)),
                       "it is no input, no initializer, and no node writes it", "write the model again with the tool it came from"},
                      {{"value", text::printable(name)}});
}

void Inference::refuse_contradiction(const ModelNode& node, const std::string& why) const {
  throw ArgumentError(ErrorCode::size_mismatch,
                      {text::join(describe(node), " of ", text::printable(name_)), why, "correct the model: this node cannot run"},
                      {{"node", text::printable(node.name)}});
}

void Inference::check_attributes(const ModelNode& node) {
  for (const Attribute& attribute : node.attributes) {
    if (attribute.tensor != nullptr) check_tensor(*attribute.tensor, external_, name_);
    if (attribute.sparse != nullptr) check_sparse(*attribute.sparse, external_, name_);
  }
}

Step Inference::take_step(Scope& scope, const ModelNode& node) {
  check_attributes(node);
  Step step{.node = &node};
  base::take(2 * (node.inputs.size() + node.outputs.size()) * sizeof(std::uint32_t) +
             node.outputs.size() * (sizeof(TensorType) + sizeof(std::optional<Contents>)));
  for (const std::string_view input : node.inputs) step.inputs.push_back(input.empty() ? kAbsent : resolve(scope, node, input));
  Call call = call_of(step);
  const bool pure_inside = infer_subgraphs(scope, step, call);
  const bool standard = node.domain.empty() && !functions_.is_call(node);
  if (const Rule rule = standard ? shape_rule(node.op) : nullptr) {
    rule(call);
    // In a subgraph the types are those of its first run, if it runs at all.
    if (scope.parent == nullptr && !call.contradiction().empty()) refuse_contradiction(node, call.contradiction());
    fold(call);
  }
  const auto is_constant = [&](std::uint32_t value) { return value == kAbsent || values_[value].constant; };
  const bool pure = pure_inside && functions_.is_pure(node);
  scope.pure = scope.pure && pure;
  step.constant = pure && std::ranges::all_of(step.inputs, is_constant) && std::ranges::all_of(step.captured, is_constant);
  define_outputs(scope, node, call, step);
  return step;
}

void Inference::define_outputs(Scope& scope, const ModelNode& node, Call& call, Step& step) {
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const std::string_view name = node.outputs[i];
    if (name.empty()) {
      step.outputs.push_back(kAbsent);
      continue;
    }
    if (is_visible_outside(scope, name))
      throw ArgumentError(ErrorCode::duplicate_value,
                          {text::join(describe(node), " in a subgraph of ", text::printable(name_), " writes ", text::quoted(name)),
                           "a graph around it has a value of that name", "give each value a name of its own"},
                          {{"value", text::printable(name)}});
    step.outputs.push_back(static_cast<std::uint32_t>(values_.size()));
    TensorType type = settle(scope, name, std::move(call.out(i)));
    define(scope, {.name = name, .type = std::move(type), .contents = std::move(call.out_contents(i)), .constant = step.constant},
           "the output");
  }
}

bool Inference::is_visible_outside(const Scope& scope, std::string_view name) const {
  for (const Scope* around = scope.parent; around != nullptr; around = around->parent) {
    if (around->names.contains(name)) return true;
  }
  return false;
}

// In a subgraph, types inferred from its first inputs need not hold each time it runs: there the declared type
// wins.
TensorType Inference::settle(const Scope& scope, std::string_view name, TensorType inferred) {
  for (const auto* const names : {&scope.declared, &scope.declared_outputs}) {
    const auto found = names->find(name);
    if (found == names->end()) continue;
    if (scope.parent == nullptr) {
      inferred = symbols_.reconcile(*found->second, inferred);
    } else if (TensorType declared = symbols_.resolve(*found->second); declared.complete() || !inferred.complete()) {
      inferred = std::move(declared);
    }
  }
  return inferred;
}

Call Inference::call_of(const Step& step) const {
  std::vector<CallInput> inputs;
  for (const std::uint32_t value : step.inputs) {
    if (value == kAbsent)
      inputs.push_back({});
    else
      inputs.push_back({.type = &values_[value].type, .contents = values_[value].contents ? &*values_[value].contents : nullptr});
  }
  return Call(*step.node, model_.opset, std::move(inputs));
}

}  // namespace berth::internal::plan::onnx
