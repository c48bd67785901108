// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plan/onnx/element_type.h"

// Writes small ONNX models, for tests and for `berth tour`.
//
//     GraphWriter graph("g");
//     graph.input("x", kFloat, {"N", 3});
//     graph.node("Relu", {"x"}, {"y"});
//     graph.output("y", kFloat);
//     std::string bytes = graph.model();
//
// A protobuf message is a string of its bytes, so that it can be nested in another, or corrupted on purpose.
// Any thread.
namespace berth::internal::cli::samples {

struct WrittenDim {
  std::int64_t value = -1;
  std::string symbol = {};
  WrittenDim(std::integral auto size) : value(static_cast<std::int64_t>(size)) {}
  WrittenDim(const char* name) : symbol(name) {}  // empty: unknown
};
using WrittenShape = std::vector<WrittenDim>;

// ---- Tensors. `raw` is copied verbatim.
std::string tensor(std::string_view name, std::int64_t elem, const std::vector<std::int64_t>& dims, std::string_view raw);
std::string int_list(std::string_view name, const std::vector<std::int64_t>& ints);  // int64, one dimension
std::string int_scalar(std::string_view name, std::int64_t value);
std::string float_list(std::string_view name, const std::vector<float>& floats);

struct WrittenEntry {
  std::string key;
  std::string value;
};
std::string external_tensor(std::string_view name, std::int64_t elem, const std::vector<std::int64_t>& dims,
                            const std::vector<WrittenEntry>& entries);

// ---- Attributes.
std::string integer(std::string_view name, std::int64_t value);
std::string integers(std::string_view name, const std::vector<std::int64_t>& values);
std::string real(std::string_view name, float value);
std::string reals(std::string_view name, const std::vector<float>& values);
std::string words(std::string_view name, std::string_view value);
std::string tensor_value(std::string_view name, std::string_view tensor_bytes);
std::string subgraph(std::string_view name, std::string_view graph_bytes);

struct WrittenNode {
  std::string op;
  std::vector<std::string> inputs = {};
  std::vector<std::string> outputs = {};
  std::vector<std::string> attributes = {};
  std::string name = {};
  std::string domain = {};
};
std::string node_message(const WrittenNode& node);

// A name with a type; `shape` may be null.
std::string value_message(std::string_view name, std::int64_t elem, const WrittenShape* shape);

class GraphWriter {
 public:
  explicit GraphWriter(std::string_view name = "graph");

  GraphWriter& input(std::string_view name, std::int64_t elem, const WrittenShape& shape);
  GraphWriter& output(std::string_view name, std::int64_t elem);
  GraphWriter& output(std::string_view name, std::int64_t elem, const WrittenShape& shape);
  GraphWriter& value_info(std::string_view name, std::int64_t elem, const WrittenShape& shape);
  GraphWriter& initializer(std::string_view tensor_bytes);
  GraphWriter& node(std::string_view op, std::vector<std::string> inputs, std::vector<std::string> outputs,
                    std::vector<std::string> attributes = {}, std::string_view name = {});
  GraphWriter& node(const WrittenNode& node);

  // A weight that takes no space in the file: a node that fills a shape with zeros.
  GraphWriter& zeros(std::string_view name, const std::vector<std::int64_t>& dims);

  GraphWriter& field(std::uint32_t number, std::string_view message);  // of GraphProto

  const std::string& graph() const noexcept { return bytes_; }
  std::string model(std::int64_t opset = 17, std::int64_t ir_version = 8) const;

 private:
  std::string bytes_;
};

std::string model_message(std::string_view graph_bytes, std::int64_t opset, std::int64_t ir_version,
                          const std::vector<std::string>& functions = {});
std::string function_message(std::string_view domain, std::string_view name, const std::vector<std::string>& inputs,
                             const std::vector<std::string>& outputs, const std::vector<WrittenNode>& nodes);

}  // namespace berth::internal::cli::samples
