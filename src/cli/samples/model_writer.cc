// SPDX-License-Identifier: Apache-2.0
#include "cli/samples/model_writer.h"

#include <protozero/pbf_writer.hpp>

// Field numbers are those of onnx.proto.
namespace berth::internal::cli::samples {

using namespace plan::onnx;  // names of element types

namespace {

using protozero::pbf_writer;

constexpr std::int32_t kAttributeFloat = 1, kAttributeInt = 2, kAttributeString = 3, kAttributeTensor = 4, kAttributeGraph = 5;
constexpr std::int32_t kAttributeFloats = 6, kAttributeInts = 7;

void put(pbf_writer& writer, std::uint32_t number, std::string_view bytes) { writer.add_bytes(number, bytes.data(), bytes.size()); }

// An attribute begins with its name and ends with its type.
template <class Value>
std::string attribute(std::string_view name, std::int32_t type, Value value) {
  std::string out;
  pbf_writer writer(out);
  put(writer, 1, name);
  value(writer);
  writer.add_int32(20, type);
  return out;
}

std::string dim_message(const WrittenDim& dim) {
  std::string out;
  pbf_writer writer(out);
  if (dim.value != -1) writer.add_int64(1, dim.value);
  if (!dim.symbol.empty()) put(writer, 2, dim.symbol);
  return out;
}

template <class T>
std::string raw_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::string opset_message(std::int64_t version) {
  std::string out;
  pbf_writer writer(out);
  put(writer, 1, "");
  writer.add_int64(2, version);
  return out;
}

}  // namespace

std::string tensor(std::string_view name, std::int64_t elem, const std::vector<std::int64_t>& dims, std::string_view raw) {
  std::string out;
  pbf_writer writer(out);
  for (const std::int64_t dim : dims) writer.add_int64(1, dim);
  writer.add_int64(2, elem);
  put(writer, 8, name);
  put(writer, 9, raw);
  return out;
}

std::string int_list(std::string_view name, const std::vector<std::int64_t>& ints) {
  return tensor(name, kInt64, {static_cast<std::int64_t>(ints.size())}, raw_of(ints));
}

std::string int_scalar(std::string_view name, std::int64_t value) { return tensor(name, kInt64, {}, raw_of(std::vector{value})); }

std::string float_list(std::string_view name, const std::vector<float>& floats) {
  return tensor(name, kFloat, {static_cast<std::int64_t>(floats.size())}, raw_of(floats));
}

std::string external_tensor(std::string_view name, std::int64_t elem, const std::vector<std::int64_t>& dims,
                            const std::vector<WrittenEntry>& entries) {
  std::string out;
  pbf_writer writer(out);
  for (const std::int64_t dim : dims) writer.add_int64(1, dim);
  writer.add_int64(2, elem);
  put(writer, 8, name);
  for (const WrittenEntry& entry : entries) {
    pbf_writer inner(writer, 13);
    put(inner, 1, entry.key);
    put(inner, 2, entry.value);
  }
  writer.add_int32(14, 1);
  return out;
}

std::string integer(std::string_view name, std::int64_t value) {
  return attribute(name, kAttributeInt, [&](pbf_writer& writer) { writer.add_int64(3, value); });
}

std::string integers(std::string_view name, const std::vector<std::int64_t>& values) {
  return attribute(name, kAttributeInts, [&](pbf_writer& writer) { writer.add_packed_int64(8, values.begin(), values.end()); });
}

std::string real(std::string_view name, float value) {
  return attribute(name, kAttributeFloat, [&](pbf_writer& writer) { writer.add_float(2, value); });
}

std::string reals(std::string_view name, const std::vector<float>& values) {
  return attribute(name, kAttributeFloats, [&](pbf_writer& writer) { writer.add_packed_float(7, values.begin(), values.end()); });
}

std::string words(std::string_view name, std::string_view value) {
  return attribute(name, kAttributeString, [&](pbf_writer& writer) { put(writer, 4, value); });
}

std::string tensor_value(std::string_view name, std::string_view tensor_bytes) {
  return attribute(name, kAttributeTensor, [&](pbf_writer& writer) { put(writer, 5, tensor_bytes); });
}

std::string subgraph(std::string_view name, std::string_view graph_bytes) {
  return attribute(name, kAttributeGraph, [&](pbf_writer& writer) { put(writer, 6, graph_bytes); });
}

std::string node_message(const WrittenNode& node) {
  std::string out;
  pbf_writer writer(out);
  for (const std::string& input : node.inputs) put(writer, 1, input);
  for (const std::string& output : node.outputs) put(writer, 2, output);
  if (!node.name.empty()) put(writer, 3, node.name);
  put(writer, 4, node.op);
  for (const std::string& each : node.attributes) put(writer, 5, each);
  if (!node.domain.empty()) put(writer, 7, node.domain);
  return out;
}

// Built from strings, since pbf_writer omits empty submessages, and the shape of a scalar is empty.
std::string value_message(std::string_view name, std::int64_t elem, const WrittenShape* shape) {
  std::string dims;
  std::string of_tensor;
  std::string type;
  std::string out;
  if (shape != nullptr) {
    for (const WrittenDim& dim : *shape) {
      pbf_writer writer(dims);
      put(writer, 1, dim_message(dim));
    }
  }
  pbf_writer tensor_writer(of_tensor);
  tensor_writer.add_int64(1, elem);
  if (shape != nullptr) put(tensor_writer, 2, dims);
  pbf_writer type_writer(type);
  put(type_writer, 1, of_tensor);
  pbf_writer writer(out);
  put(writer, 1, name);
  put(writer, 2, type);
  return out;
}

GraphWriter::GraphWriter(std::string_view name) { field(2, name); }

GraphWriter& GraphWriter::field(std::uint32_t number, std::string_view message) {
  pbf_writer writer(bytes_);
  put(writer, number, message);
  return *this;
}

GraphWriter& GraphWriter::input(std::string_view name, std::int64_t elem, const WrittenShape& shape) {
  return field(11, value_message(name, elem, &shape));
}

GraphWriter& GraphWriter::output(std::string_view name, std::int64_t elem) { return field(12, value_message(name, elem, nullptr)); }

GraphWriter& GraphWriter::output(std::string_view name, std::int64_t elem, const WrittenShape& shape) {
  return field(12, value_message(name, elem, &shape));
}

GraphWriter& GraphWriter::value_info(std::string_view name, std::int64_t elem, const WrittenShape& shape) {
  return field(13, value_message(name, elem, &shape));
}

GraphWriter& GraphWriter::initializer(std::string_view tensor_bytes) { return field(5, tensor_bytes); }

GraphWriter& GraphWriter::node(const WrittenNode& node) { return field(1, node_message(node)); }

GraphWriter& GraphWriter::node(std::string_view op, std::vector<std::string> inputs, std::vector<std::string> outputs,
                               std::vector<std::string> attributes, std::string_view name) {
  return node({.op = std::string(op),
               .inputs = std::move(inputs),
               .outputs = std::move(outputs),
               .attributes = std::move(attributes),
               .name = std::string(name)});
}

GraphWriter& GraphWriter::zeros(std::string_view name, const std::vector<std::int64_t>& dims) {
  const std::string shape = std::string(name) + ".shape";
  initializer(int_list(shape, dims));
  return node("ConstantOfShape", {shape}, {std::string(name)});
}

std::string GraphWriter::model(std::int64_t opset, std::int64_t ir_version) const { return model_message(bytes_, opset, ir_version); }

std::string model_message(std::string_view graph_bytes, std::int64_t opset, std::int64_t ir_version,
                          const std::vector<std::string>& functions) {
  std::string out;
  pbf_writer writer(out);
  writer.add_int64(1, ir_version);
  put(writer, 2, "berth");
  put(writer, 7, graph_bytes);
  put(writer, 8, opset_message(opset));
  for (const std::string& function : functions) put(writer, 25, function);
  return out;
}

std::string function_message(std::string_view domain, std::string_view name, const std::vector<std::string>& inputs,
                             const std::vector<std::string>& outputs, const std::vector<WrittenNode>& nodes) {
  std::string out;
  pbf_writer writer(out);
  put(writer, 1, name);
  for (const std::string& input : inputs) put(writer, 4, input);
  for (const std::string& output : outputs) put(writer, 5, output);
  for (const WrittenNode& node : nodes) put(writer, 7, node_message(node));
  put(writer, 10, domain);
  return out;
}

}  // namespace berth::internal::cli::samples
