// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "berth/plan/onnx.h"
#include "plan/onnx/model.h"
#include "plan/onnx/tensor_type.h"

// The symbolic dimensions of a model and their sizes: those that the caller bound, and those inferred from
// shapes.
namespace berth::internal::plan::onnx {

// "'a', 'b' and 3 more", for messages.
std::string listed(const std::vector<std::string>& names);

class Symbols {
 public:
  // Throws ArgumentError: invalid_argument for a binding of a symbol that the model does not have,
  // binding_conflict for a negative one.
  Symbols(const Model& model, const OnnxOptions& options, std::string_view name);

  // The declared type, with known sizes in place of symbols.
  TensorType resolve(const DeclaredValue& declared) const;

  // Merges the declared and the inferred type. Learns the sizes of symbols. Throws ArgumentError where the two
  // contradict one another: binding_conflict at a symbol, else size_mismatch.
  TensorType reconcile(const DeclaredValue& declared, const TensorType& inferred);

  std::vector<std::string> names() const;    // all, in order of appearance
  std::vector<std::string> unbound() const;  // those without a size

 private:
  struct Symbol {
    std::string_view name;
    std::int64_t size = kUnknownDim;
    bool bound = false;  // by the caller
  };

  void collect(const ModelGraph& graph);
  void collect(const DeclaredValue& declared);
  void bind(const std::string& symbol, std::int64_t size);
  std::int64_t size_of(const DeclaredDim& dim) const;
  std::int64_t reconcile_dim(const DeclaredValue& declared, std::size_t axis, std::int64_t inferred);

  std::string_view model_;
  std::vector<Symbol> symbols_;
  std::unordered_map<std::string_view, std::size_t> index_;
};

}  // namespace berth::internal::plan::onnx
