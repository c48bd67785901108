// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

// The parsed form of an ONNX model: plain structs of views into the file's bytes, which must outlive them.
// Nothing is inferred here, and names are not resolved. Of a tensor's data only the first few numbers are kept.
namespace berth::internal::plan::onnx {

// Tensors of more elements than this are weights, and never sizes to compute with: twice the highest rank, so
// that values stay small however many there are.
inline constexpr std::size_t kMostContents = 128;

struct ExternalEntry {
  std::string_view key;
  std::string_view value;
};

struct ModelTensor {
  std::string_view name = {};
  std::vector<std::int64_t> dims = {};
  std::int64_t elem = 0;  // TensorProto.DataType
  std::string_view raw = {};
  bool has_raw = false;
  bool external = false;
  std::vector<ExternalEntry> external_entries = {};

  // The typed fields. Counts include the elements that were not kept.
  std::vector<std::int64_t> ints = {};  // of int32_data, int64_data or uint64_data
  std::vector<float> floats = {};
  std::uint64_t int32_count = 0;
  std::uint64_t int64_count = 0;
  std::uint64_t uint64_count = 0;
  std::uint64_t float_count = 0;
  std::uint64_t double_count = 0;
  std::uint64_t string_count = 0;
};

struct SparseModelTensor {
  ModelTensor values = {};
  ModelTensor indices = {};
  std::vector<std::int64_t> dims = {};
};

struct DeclaredDim {
  std::int64_t value = -1;  // -1: not given
  std::string_view symbol = {};
};

// A name with a declared type: an input, an output or a value_info.
struct DeclaredValue {
  std::string_view name = {};
  bool tensor = false;  // a dense tensor: other types have no size in the file
  std::int64_t elem = 0;
  bool ranked = false;
  std::vector<DeclaredDim> dims = {};
};

struct ModelGraph;

struct Attribute {
  std::string_view name = {};
  std::int64_t i = 0;
  float f = 0;
  std::string_view s = {};
  std::vector<std::int64_t> ints = {};
  std::vector<float> floats = {};
  std::uint64_t string_count = 0;
  std::unique_ptr<ModelTensor> tensor = {};
  std::unique_ptr<SparseModelTensor> sparse = {};
  std::vector<std::unique_ptr<ModelGraph>> graphs = {};  // the one of `g` and those of `graphs`
};

struct ModelNode {
  std::string_view name = {};
  std::string_view op = {};
  std::string_view domain = {};  // "" for the standard operators, whichever alias the file uses
  std::string_view overload = {};
  std::vector<std::string_view> inputs = {};
  std::vector<std::string_view> outputs = {};
  std::vector<Attribute> attributes = {};

  const Attribute* find(std::string_view attribute) const noexcept;  // the last of that name; null when there
                                                                     // is none
};

struct ModelGraph {
  std::string_view name = {};
  std::vector<ModelNode> nodes = {};
  std::vector<ModelTensor> initializers = {};
  std::vector<SparseModelTensor> sparse_initializers = {};
  std::vector<DeclaredValue> inputs = {};
  std::vector<DeclaredValue> outputs = {};
  std::vector<DeclaredValue> value_info = {};
};

struct ModelFunction {
  std::string_view domain = {};
  std::string_view name = {};
  std::string_view overload = {};
  std::vector<ModelNode> nodes = {};
};

struct Model {
  std::int64_t ir_version = 0;
  std::int64_t opset = 0;  // of the standard operators
  ModelGraph graph = {};
  std::vector<ModelFunction> functions = {};
};

// Throws FormatError as read_onnx does for bytes that are not a model.
Model read_model(std::string_view bytes, std::string_view name);

// Calls `visit` with every graph among a node's attributes.
template <class Visit>
void each_subgraph(const ModelNode& node, Visit visit) {
  for (const Attribute& attribute : node.attributes) {
    for (const auto& graph : attribute.graphs) visit(*graph);
  }
}

}  // namespace berth::internal::plan::onnx
