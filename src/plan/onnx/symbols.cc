// SPDX-License-Identifier: Apache-2.0
#include "plan/onnx/symbols.h"

#include "base/text.h"
#include "berth/base/error.h"

namespace berth::internal::plan::onnx {

namespace {

constexpr std::size_t kMostNamed = 10;  // in one message

[[noreturn]] void refuse_mismatch(const DeclaredValue& declared, const TensorType& said, const TensorType& inferred) {
  throw ArgumentError(
      ErrorCode::size_mismatch,
      {text::join("value ", text::quoted(declared.name)),
       said.elem != inferred.elem ? text::join("the file says its element type is ", said.elem, ", and its node makes ", inferred.elem)
                                  : text::join("the file says its shape is ", to_text(said), ", and its node makes ", to_text(inferred)),
       "correct the model's value_info, or leave it out"},
      {{"value", text::printable(declared.name)}});
}

}  // namespace

std::string listed(const std::vector<std::string>& names) {
  std::string out;
  for (std::size_t i = 0; i < names.size() && i < kMostNamed; ++i) out += text::join(i == 0 ? "" : ", ", text::quoted(names[i]));
  if (names.size() > kMostNamed) out += text::join(" and ", names.size() - kMostNamed, " more");
  return out;
}

Symbols::Symbols(const Model& model, const OnnxOptions& options, std::string_view name) : model_(name) {
  collect(model.graph);
  for (const auto& [symbol, size] : options.bind) bind(symbol, size);
}

void Symbols::collect(const ModelGraph& graph) {
  for (const DeclaredValue& value : graph.inputs) collect(value);
  for (const DeclaredValue& value : graph.outputs) collect(value);
  for (const DeclaredValue& value : graph.value_info) collect(value);
  for (const ModelNode& node : graph.nodes) each_subgraph(node, [&](const ModelGraph& inner) { collect(inner); });
}

void Symbols::collect(const DeclaredValue& declared) {
  for (const DeclaredDim& dim : declared.dims) {
    if (!dim.symbol.empty() && index_.emplace(dim.symbol, symbols_.size()).second) symbols_.push_back({.name = dim.symbol});
  }
}

void Symbols::bind(const std::string& symbol, std::int64_t size) {
  const auto found = index_.find(symbol);
  const std::string asked = text::join("binding ", text::quoted(symbol), " to ", size, " in ", text::printable(model_));
  if (found == index_.end())
    throw ArgumentError(
        ErrorCode::invalid_argument,
        {asked, "the model has no such symbol",
         symbols_.empty() ? std::string("it has none: leave the binding out") : text::join("its symbols are ", listed(names()))},
        {{"symbol", text::printable(symbol)}});
  if (size < 0)
    throw ArgumentError(ErrorCode::binding_conflict, {asked, "a dimension is not negative", "bind it to the size it has when it runs"},
                        {{"symbol", text::printable(symbol)}, {"size", size}});
  symbols_[found->second].size = size;
  symbols_[found->second].bound = true;
}

std::int64_t Symbols::size_of(const DeclaredDim& dim) const {
  return dim.symbol.empty() ? dim.value : symbols_[index_.at(dim.symbol)].size;
}

TensorType Symbols::resolve(const DeclaredValue& declared) const {
  TensorType type;
  if (!declared.tensor) return type;
  type.elem = declared.elem;
  type.ranked = declared.ranked;
  for (const DeclaredDim& dim : declared.dims) type.dims.push_back(size_of(dim));
  return type;
}

TensorType Symbols::reconcile(const DeclaredValue& declared, const TensorType& inferred) {
  TensorType type = resolve(declared);
  if (inferred.elem != 0 && type.elem != 0 && inferred.elem != type.elem) refuse_mismatch(declared, type, inferred);
  if (type.elem == 0) type.elem = inferred.elem;
  if (!inferred.ranked) return type;
  if (!type.ranked) return TensorType::of(type.elem, inferred.dims);
  if (type.dims.size() != inferred.dims.size()) refuse_mismatch(declared, type, TensorType::of(type.elem, inferred.dims));
  for (std::size_t i = 0; i < type.dims.size(); ++i) {
    const std::int64_t dim = reconcile_dim(declared, i, inferred.dims[i]);
    if (dim != inferred.dims[i] && inferred.dims[i] != kUnknownDim)
      refuse_mismatch(declared, type, TensorType::of(type.elem, inferred.dims));
    type.dims[i] = dim;
  }
  return type;
}

std::int64_t Symbols::reconcile_dim(const DeclaredValue& declared, std::size_t axis, std::int64_t inferred) {
  const DeclaredDim& dim = declared.dims[axis];
  const std::int64_t size = size_of(dim);
  if (inferred == kUnknownDim || inferred == size) return size;
  if (dim.symbol.empty()) return size == kUnknownDim ? inferred : size;
  Symbol& symbol = symbols_[index_.at(dim.symbol)];
  if (symbol.size == kUnknownDim) return symbol.size = inferred;
  throw ArgumentError(
      ErrorCode::binding_conflict,
      {text::join("axis ", axis, " of value ", text::quoted(declared.name), ", which is ", text::quoted(symbol.name)),
       text::join("its node makes ", inferred, symbol.bound ? ", and it is bound to " : ", and elsewhere it is ", symbol.size),
       symbol.bound ? text::join("bind ", text::printable(symbol.name), " to ", inferred, ", or correct the model")
                    : std::string("correct the model: a symbol has one size")},
      {{"symbol", text::printable(symbol.name)}, {"value", text::printable(declared.name)}});
}

std::vector<std::string> Symbols::names() const {
  std::vector<std::string> all;
  for (const Symbol& symbol : symbols_) all.emplace_back(symbol.name);
  return all;
}

std::vector<std::string> Symbols::unbound() const {
  std::vector<std::string> all;
  for (const Symbol& symbol : symbols_) {
    if (symbol.size == kUnknownDim) all.emplace_back(symbol.name);
  }
  return all;
}

}  // namespace berth::internal::plan::onnx
