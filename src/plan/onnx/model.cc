// SPDX-License-Identifier: Apache-2.0
#include "plan/onnx/model.h"

#include "base/allowance.h"
#include "base/text.h"
#include "berth/base/shape.h"
#include "plan/onnx/wire.h"

// Field numbers are those of onnx.proto. A singular message that occurs twice is parsed into the same struct
// twice, as protobuf merges it.
namespace berth::internal::plan::onnx {

namespace {

void read_graph(Fields fields, ModelGraph& graph);

std::string_view standard_domain(std::string_view domain) { return domain == "ai.onnx" ? std::string_view() : domain; }

void read_dims(Fields& fields, std::vector<std::int64_t>& dims) {
  std::uint64_t count = dims.size();
  fields.integers(dims, count, kMaxRank + 1);
  if (count > kMaxRank) refuse(fields.source(), text::join("a tensor has more than ", kMaxRank, " dimensions"));
  for (const std::int64_t dim : dims) {
    if (dim < 0) refuse(fields.source(), text::join("a tensor has a dimension of ", dim));
  }
}

ExternalEntry read_entry(Fields fields) {
  ExternalEntry entry;
  while (fields.next()) {
    if (fields.number() == 1) entry.key = fields.text();
    if (fields.number() == 2) entry.value = fields.text();
  }
  return entry;
}

void read_tensor(Fields fields, ModelTensor& tensor) {
  while (fields.next()) {
    switch (fields.number()) {
      case 1: read_dims(fields, tensor.dims); break;
      case 2: tensor.elem = fields.integer(); break;
      case 4: fields.reals(tensor.floats, tensor.float_count, kMostContents); break;
      case 5: fields.integers(tensor.ints, tensor.int32_count, kMostContents); break;
      case 6: fields.text(), ++tensor.string_count; break;
      case 7: fields.integers(tensor.ints, tensor.int64_count, kMostContents); break;
      case 8: tensor.name = fields.text(); break;
      case 9: tensor.raw = fields.text(), tensor.has_raw = true; break;
      case 10: fields.count_doubles(tensor.double_count); break;
      case 11: fields.integers(tensor.ints, tensor.uint64_count, kMostContents); break;
      case 13: base::append(tensor.external_entries, read_entry(fields.message())); break;
      case 14: tensor.external = fields.integer() == 1; break;
      default: break;
    }
  }
}

void read_sparse(Fields fields, SparseModelTensor& sparse) {
  while (fields.next()) {
    switch (fields.number()) {
      case 1: read_tensor(fields.message(), sparse.values); break;
      case 2: read_tensor(fields.message(), sparse.indices); break;
      case 3: read_dims(fields, sparse.dims); break;
      default: break;
    }
  }
}

// Names that some exporters give to every unknown dimension, so that they do not stand for one size.
bool means_unknown(std::string_view symbol) { return symbol == "?" || symbol == "None"; }

// Value and symbol are a oneof: the last wins.
DeclaredDim read_declared_dim(Fields fields) {
  DeclaredDim dim;
  while (fields.next()) {
    if (fields.number() == 1) {
      dim = {.value = fields.integer(), .symbol = {}};
      if (dim.value < 0) dim.value = -1;  // some exporters write -1 for unknown
    } else if (fields.number() == 2) {
      dim = {.value = -1, .symbol = fields.text()};
      if (means_unknown(dim.symbol)) dim.symbol = {};
    }
  }
  return dim;
}

void read_declared_shape(Fields fields, DeclaredValue& value) {
  value.ranked = true;
  while (fields.next()) {
    if (fields.number() == 1) base::append(value.dims, read_declared_dim(fields.message()));
  }
  if (value.dims.size() > kMaxRank) refuse(fields.source(), text::join("a shape has more than ", kMaxRank, " dimensions"));
}

void read_tensor_type(Fields fields, DeclaredValue& value) {
  value.tensor = true;
  while (fields.next()) {
    if (fields.number() == 1) value.elem = fields.integer();
    if (fields.number() == 2) read_declared_shape(fields.message(), value);
  }
}

bool is_other_type(std::uint32_t number) {
  constexpr std::uint32_t kSequence = 4, kMap = 5, kOpaque = 7, kSparse = 8, kOptional = 9;
  return number == kSequence || number == kMap || number == kOpaque || number == kSparse || number == kOptional;
}

void read_type(Fields fields, DeclaredValue& value) {
  while (fields.next()) {
    if (fields.number() == 1) read_tensor_type(fields.message(), value);
    if (is_other_type(fields.number())) value = {.name = value.name};
  }
}

DeclaredValue read_declared(Fields fields) {
  DeclaredValue value;
  while (fields.next()) {
    if (fields.number() == 1) value.name = fields.text();
    if (fields.number() == 2) read_type(fields.message(), value);
  }
  return value;
}

void read_subgraph(Fields fields, Attribute& attribute) {
  base::take(sizeof(ModelGraph) + base::kHeapBlock);
  base::append(attribute.graphs, std::make_unique<ModelGraph>());
  read_graph(std::move(fields), *attribute.graphs.back());
}

template <class T>
T& made(std::unique_ptr<T>& pointer) {
  if (pointer == nullptr) {
    base::take(sizeof(T) + base::kHeapBlock);
    pointer = std::make_unique<T>();
  }
  return *pointer;
}

// Lists of tensors and of types are skipped: no operator that has a rule takes one.
void read_attribute_field(Fields& fields, Attribute& attribute) {
  std::uint64_t count = 0;
  switch (fields.number()) {
    case 1: attribute.name = fields.text(); break;
    case 2: attribute.f = fields.real(); break;
    case 3: attribute.i = fields.integer(); break;
    case 4: attribute.s = fields.text(); break;
    case 5: read_tensor(fields.message(), made(attribute.tensor)); break;
    case 6: read_subgraph(fields.message(), attribute); break;
    case 7: fields.reals(attribute.floats, count, SIZE_MAX); break;
    case 8: fields.integers(attribute.ints, count, SIZE_MAX); break;
    case 9: fields.text(), ++attribute.string_count; break;
    case 11: read_subgraph(fields.message(), attribute); break;
    case 22: read_sparse(fields.message(), made(attribute.sparse)); break;
    default: break;
  }
}

Attribute read_attribute(Fields fields) {
  Attribute attribute;
  while (fields.next()) read_attribute_field(fields, attribute);
  return attribute;
}

ModelNode read_node(Fields fields) {
  base::checkpoint();
  ModelNode node;
  while (fields.next()) {
    switch (fields.number()) {
      case 1: base::append(node.inputs, fields.text()); break;
      case 2: base::append(node.outputs, fields.text()); break;
      case 3: node.name = fields.text(); break;
      case 4: node.op = fields.text(); break;
      case 5: base::append(node.attributes, read_attribute(fields.message())); break;
      case 7: node.domain = standard_domain(fields.text()); break;
      case 8: node.overload = fields.text(); break;
      default: break;
    }
  }
  return node;
}

void read_graph(Fields fields, ModelGraph& graph) {
  while (fields.next()) {
    switch (fields.number()) {
      case 1: base::append(graph.nodes, read_node(fields.message())); break;
      case 2: graph.name = fields.text(); break;
      case 5: read_tensor(fields.message(), base::append(graph.initializers, {})); break;
      case 11: base::append(graph.inputs, read_declared(fields.message())); break;
      case 12: base::append(graph.outputs, read_declared(fields.message())); break;
      case 13: base::append(graph.value_info, read_declared(fields.message())); break;
      case 15: read_sparse(fields.message(), base::append(graph.sparse_initializers, {})); break;
      default: break;
    }
  }
}

ModelFunction read_function(Fields fields) {
  ModelFunction function;
  while (fields.next()) {
    switch (fields.number()) {
      case 1: function.name = fields.text(); break;
      case 7: base::append(function.nodes, read_node(fields.message())); break;
      case 10: function.domain = standard_domain(fields.text()); break;
      case 13: function.overload = fields.text(); break;
      default: break;
    }
  }
  return function;
}

void read_opset(Fields fields, Model& model) {
  std::string_view domain;
  std::int64_t version = 0;
  while (fields.next()) {
    if (fields.number() == 1) domain = standard_domain(fields.text());
    if (fields.number() == 2) version = fields.integer();
  }
  if (domain.empty()) model.opset = version;
}

// Returns whether there was a graph.
bool read_fields(Fields fields, Model& model) {
  bool has_graph = false;
  while (fields.next()) {
    switch (fields.number()) {
      case 1: model.ir_version = fields.integer(); break;
      case 7: read_graph(fields.message(), model.graph), has_graph = true; break;
      case 8: read_opset(fields.message(), model); break;
      case 25: base::append(model.functions, read_function(fields.message())); break;
      default: break;
    }
  }
  return has_graph;
}

}  // namespace

const Attribute* ModelNode::find(std::string_view attribute) const noexcept {
  for (std::size_t i = attributes.size(); i > 0; --i) {
    if (attributes[i - 1].name == attribute) return &attributes[i - 1];
  }
  return nullptr;
}

Model read_model(std::string_view bytes, std::string_view name) {
  Source source{bytes, name, bytes.data()};
  if (bytes.size() > INT32_MAX) refuse(source, "there are more than 2 GiB, the limit of a protobuf message");
  Model model;
  bool has_graph = false;
  read_guarded(source, [&] { has_graph = read_fields(Fields(source, bytes, 1), model); });
  if (!has_graph) refuse(source, "the model ends without a graph");
  return model;
}

}  // namespace berth::internal::plan::onnx
