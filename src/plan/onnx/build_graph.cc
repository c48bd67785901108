// SPDX-License-Identifier: Apache-2.0
#include "plan/onnx/build_graph.h"

#include <algorithm>

#include "base/allowance.h"
#include "base/text.h"
#include "berth/base/checked.h"
#include "berth/base/error.h"
#include "plan/onnx/element_type.h"
#include "plan/onnx/reuse.h"

namespace berth::internal::plan::onnx {

namespace {

// Values whose element type has no berth dtype get a size in bytes.
void set_size(GraphValue& value, const TensorType& type) {
  const ElementType* const element = element_type(type.elem);
  if (!type.complete() || element == nullptr || element->bits == 0) return;
  value.shape = Shape(type.dims);
  value.dtype = element->dtype;
  if (element->dtype) return;
  value.bytes = type.bytes();
  if (!value.bytes)
    throw ArgumentError(ErrorCode::size_overflow,
                        {text::join("value ", text::quoted(value.name), " of shape ", value.shape->to_string()),
                         "its bytes do not fit in 64 bits", "check its shape"},
                        {{"value", text::printable(value.name)}});
}

class Builder {
 public:
  Builder(const Inference& inference, OnnxModel& out)
      : inference_(inference), out_(out), needed_(inference.values().size(), false), ids_(inference.values().size(), kNoValue) {}

  void build() {
    mark_needed();
    for (std::uint32_t i = 0; i < inference_.graph_inputs(); ++i) id_of(i);
    const auto planned = [](const Step& step) { return !step.constant; };
    base::reserve(out_.graph.nodes, static_cast<std::size_t>(std::ranges::count_if(inference_.steps(), planned)));
    for (const Step& step : inference_.steps()) {
      base::checkpoint();
      if (planned(step)) add(step);
    }
    for (const std::uint32_t output : inference_.outputs()) out_.graph.values[id_of(output)].output = true;
  }

  const std::vector<std::string>& unknown() const { return unknown_; }

 private:
  void mark_needed() {
    for (const Step& step : inference_.steps()) {
      if (step.constant) continue;
      for (const std::uint32_t value : step.inputs) need(value);
      for (const std::uint32_t value : step.captured) need(value);
    }
    for (const std::uint32_t value : inference_.outputs()) need(value);
  }

  void need(std::uint32_t value) {
    if (value != kAbsent) needed_[value] = true;
  }

  // Adds the value if it is new.
  ValueId id_of(std::uint32_t index) {
    if (index == kAbsent) return kNoValue;
    if (ids_[index] != kNoValue) return ids_[index];
    const KnownValue& known = inference_.values()[index];
    GraphValue value{.name = std::string(known.name)};
    value.external = known.constant || index < inference_.graph_inputs();
    set_size(value, known.type);
    if (known.constant) count_weight(value);
    if (!value.external && !value.bytes && !value.dtype) {
      value.dynamic = true;
      unknown_.push_back(value.name);
    }
    if (value.shape) base::take(2 * value.shape->rank() * sizeof(std::int64_t));
    base::append(out_.graph.values, std::move(value));
    return ids_[index] = static_cast<ValueId>(out_.graph.values.size() - 1);
  }

  void count_weight(const GraphValue& value) {
    ++out_.weights;
    out_.weight_bytes = checked_add(out_.weight_bytes, value.size_bytes().value_or(0), "the weights' bytes");
  }

  void add(const Step& step) {
    const ModelNode& from = *step.node;
    GraphNode node{.name = std::string(from.name),
                   .op = from.domain.empty() ? std::string(from.op) : text::join(from.domain, ".", from.op)};
    const std::size_t reads = step.inputs.size() + step.captured.size();
    base::reserve(node.inputs, reads);
    base::reserve(node.outputs, step.outputs.size());
    base::take((reads + step.outputs.size()) * (sizeof(ViewOption) + sizeof(InplaceOption)) + step.outputs.size() * sizeof(TensorType));
    for (const std::uint32_t value : step.inputs) node.inputs.push_back(id_of(value));
    for (const std::uint32_t value : step.captured) node.inputs.push_back(id_of(value));
    std::vector<TensorType> types;
    for (const std::uint32_t value : step.outputs) {
      const bool left_out = value == kAbsent || !needed_[value];
      node.outputs.push_back(left_out ? kNoValue : id_of(value));
      types.push_back(value == kAbsent ? TensorType() : inference_.values()[value].type);
    }
    if (from.domain.empty() && !inference_.is_function(from)) add_reuse(inference_.call_of(step), types, node);
    drop_unplanned(node);
    out_.graph.nodes.push_back(std::move(node));
  }

  // Drops options on values that are not planned: their bytes cannot be reused.
  void drop_unplanned(GraphNode& node) const {
    const auto unplanned = [&](const auto& option) {
      const GraphValue& output = out_.graph.values[node.outputs[option.output]];
      const GraphValue& input = out_.graph.values[node.inputs[option.input]];
      return output.external || output.dynamic || input.external || input.dynamic;
    };
    std::erase_if(node.inplace, unplanned);
    std::erase_if(node.views, unplanned);
  }

  const Inference& inference_;
  OnnxModel& out_;
  std::vector<bool> needed_;
  std::vector<ValueId> ids_;
  std::vector<std::string> unknown_;
};

[[noreturn]] void refuse_unknown(const std::vector<std::string>& values, const std::vector<std::string>& symbols, std::string_view name) {
  throw ArgumentError(
      ErrorCode::unknown_shape,
      {text::join("planning ", text::printable(name)), text::join("the sizes of these values are not known: ", listed(values)),
       symbols.empty()
           ? std::string("run shape inference over the model and save what it finds, or allow unknown shapes (--allow-unknown), "
                         "which leaves these values out of the plan")
           : text::join("bind the symbols ", listed(symbols), " (--bind batch=8,…), or allow unknown shapes (--allow-unknown)")},
      {{"values", listed(values)}, {"count", values.size()}, {"symbols", listed(symbols)}});
}

}  // namespace

void build_graph(const Model& model, const Inference& inference, const Symbols& symbols, const OnnxOptions& options, std::string_view name,
                 OnnxModel& out) {
  out.graph.name = model.graph.name.empty() ? std::string(name) : std::string(model.graph.name);
  Builder builder(inference, out);
  builder.build();
  out.unknown = builder.unknown();
  if (!out.unknown.empty() && !options.allow_unknown) refuse_unknown(out.unknown, symbols.unbound(), name);
  out.graph.validate();
}

}  // namespace berth::internal::plan::onnx
