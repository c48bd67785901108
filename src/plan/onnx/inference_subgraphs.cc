// SPDX-License-Identifier: Apache-2.0
#include "base/allowance.h"
#include "plan/onnx/element_type.h"
#include "plan/onnx/inference.h"

namespace berth::internal::plan::onnx {

namespace {

// ---- If: the common type of both branches.

void set_if(Call& call, const std::vector<TensorType>& then_types, const std::vector<TensorType>& else_types) {
  for (std::size_t i = 0; i < then_types.size() && i < else_types.size(); ++i) call.set(i, common(then_types[i], else_types[i]));
}

// ---- Loop: loop-carried values, and values collected, one for each iteration.

std::vector<TensorType> loop_inputs(const Call& call) {
  std::vector<TensorType> inputs = {TensorType::of(kInt64, {}), TensorType::of(kBool, {})};
  for (std::size_t i = 2; i < call.inputs(); ++i) inputs.push_back(call.in(i));
  return inputs;
}

// The body was inferred with the types of the first iteration. They hold for all iterations only if the body
// produces the same types.
bool repeats(const Call& call, std::size_t first_input, const std::vector<TensorType>& made, std::size_t first_made, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (first_made + i >= made.size() || !(made[first_made + i] == call.in(first_input + i))) return false;
  }
  return true;
}

void set_loop(Call& call, const std::vector<TensorType>& made) {
  const std::size_t carried = call.inputs() < 2 ? 0 : call.inputs() - 2;
  const bool steady = repeats(call, 2, made, 1, carried);
  for (std::size_t i = 0; i < call.outputs() && i + 1 < made.size(); ++i) {
    TensorType type = made[i + 1];
    if (!steady) type = TensorType::of(type.elem);
    if (i >= carried && type.ranked) type.dims.insert(type.dims.begin(), kUnknownDim);
    call.set(i, std::move(type));
  }
}

// ---- Scan: loop-carried states, and slices taken and concatenated along an axis. Since opset 9.

struct ScanForm {
  std::size_t states = 0;
  std::size_t scanned = 0;  // inputs
};

std::optional<ScanForm> scan_form(const Call& call) {
  const std::int64_t scanned = call.integer("num_scan_inputs", 0);
  if (call.opset() < 9 || scanned < 0 || scanned > static_cast<std::int64_t>(call.inputs())) return std::nullopt;
  return ScanForm{call.inputs() - static_cast<std::size_t>(scanned), static_cast<std::size_t>(scanned)};
}

std::int64_t listed_axis(const Call& call, std::string_view list, std::size_t i) {
  const auto* const axes = call.int_list(list);
  return axes != nullptr && i < axes->size() ? (*axes)[i] : 0;
}

std::vector<TensorType> scan_inputs(const Call& call) {
  std::vector<TensorType> inputs;
  const auto form = scan_form(call);
  for (std::size_t i = 0; form && i < call.inputs(); ++i) {
    TensorType type = call.in(i);
    if (i >= form->states && type.ranked) {
      const auto axis = axis_of(listed_axis(call, "scan_input_axes", i - form->states), type.dims.size());
      if (!axis) return {};
      type.dims.erase(type.dims.begin() + static_cast<std::ptrdiff_t>(*axis));
    }
    inputs.push_back(std::move(type));
  }
  return inputs;
}

std::int64_t scan_length(const Call& call, const ScanForm& form) {
  if (form.scanned == 0) return kUnknownDim;
  const TensorType& first = call.in(form.states);
  const auto axis = axis_of(listed_axis(call, "scan_input_axes", 0), first.dims.size());
  return first.ranked && axis ? first.dims[*axis] : kUnknownDim;
}

void set_scan(Call& call, const std::vector<TensorType>& made) {
  const auto form = scan_form(call);
  if (!form) return;
  const bool steady = repeats(call, 0, made, 0, form->states);
  for (std::size_t i = 0; i < call.outputs() && i < made.size(); ++i) {
    TensorType type = made[i];
    if (!steady) type = TensorType::of(type.elem);
    if (i >= form->states && type.ranked) {
      const auto axis = axis_of(listed_axis(call, "scan_output_axes", i - form->states), type.dims.size() + 1);
      if (!axis) continue;
      type.dims.insert(type.dims.begin() + static_cast<std::ptrdiff_t>(*axis), scan_length(call, *form));
    }
    call.set(i, std::move(type));
  }
}

std::vector<TensorType> body_inputs(const Call& call) {
  if (call.node().op == "Loop") return loop_inputs(call);
  if (call.node().op == "Scan") return scan_inputs(call);
  return {};
}

void set_outputs(Call& call, const std::vector<std::vector<TensorType>>& made) {
  const std::string_view op = call.node().op;
  if (op == "If" && made.size() == 2) set_if(call, made[0], made[1]);
  if (op == "Loop" && made.size() == 1) set_loop(call, made[0]);
  if (op == "Scan" && made.size() == 1) set_scan(call, made[0]);
}

}  // namespace

bool Inference::infer_subgraphs(Scope& scope, Step& step, Call& call) {
  bool pure = true;
  std::vector<std::vector<TensorType>> made;
  each_subgraph(*step.node, [&](const ModelGraph& graph) {
    std::vector<TensorType>& outputs = made.emplace_back();
    if (!walk(scope, graph, body_inputs(call), step, outputs)) pure = false;
  });
  std::unordered_set<std::uint32_t> seen(step.inputs.begin(), step.inputs.end());
  std::erase_if(step.captured, [&](std::uint32_t value) { return !seen.insert(value).second; });
  if (step.node->domain.empty()) set_outputs(call, made);
  return pure;
}

// The values of a subgraph are dropped when it is done: they are not visible outside.
bool Inference::walk(Scope& scope, const ModelGraph& graph, const std::vector<TensorType>& inputs, Step& step,
                     std::vector<TensorType>& outputs) {
  Scope inner{.graph = &graph, .parent = &scope};
  const auto before = static_cast<std::ptrdiff_t>(values_.size());
  declare(inner);
  define_inputs(inner, inputs);
  define_initializers(inner);
  for (const ModelNode& node : graph.nodes) {
    base::checkpoint();
    take_step(inner, node);
  }
  const ModelNode end{.op = "subgraph output"};
  for (const DeclaredValue& output : graph.outputs)
    outputs.push_back(output.name.empty() ? TensorType() : values_[resolve(inner, end, output.name)].type);
  for (auto value = values_.begin() + before; value != values_.end(); ++value) subgraph_values_ += value->constant ? 0 : 1;
  values_.erase(values_.begin() + before, values_.end());
  base::reserve(step.captured, step.captured.size() + inner.captured.size());
  step.captured.insert(step.captured.end(), inner.captured.begin(), inner.captured.end());
  return inner.pure;
}

}  // namespace berth::internal::plan::onnx
