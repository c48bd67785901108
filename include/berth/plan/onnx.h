// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/read_limits.h"
#include "berth/export.h"
#include "berth/plan/graph.h"

// Reads an ONNX model as a graph to plan, straight from the bytes of the file and without the model's weights.
//
//     OnnxModel model = read_onnx(bytes, {.bind = {{"batch", 8}, {"seq", 128}}});
//     Plan p = plan(model.graph);
//
// Graph inputs and weights are external; so are constants, and values computed from constants alone. An
// initializer that is also an input is taken as its default, the weight: a caller that overrides it must not
// change shapes by it. Outputs that no node reads are left out. Shapes come from the file, then from inference
// rules for the operators of `onnx_shape_rules()`; where a shape stays unknown, nothing is guessed. A subgraph
// (If, Loop, Scan) reads the values it captures while its node runs; its own values are not planned. A table
// lists the operators that may run in place or make views: an operator that is not in it gets bytes of its own.
namespace berth {

struct OnnxOptions {
  std::map<std::string, std::int64_t, std::less<>> bind = {};  // sizes of symbolic dimensions

  // Makes values whose shape stays unknown dynamic, so that they are not planned. Otherwise they are an error
  // that names them.
  bool allow_unknown = false;

  // Callback for each file of external data that the model names, by its path in the model; returns its size in
  // bytes, or nothing when the file does not exist. Paths that could escape the model's folder are refused
  // before the call. Left out, a model with external data is refused.
  std::function<std::optional<std::uint64_t>(const std::string& path)> external_size = {};

  ReadLimits limits = {};
};

struct OnnxModel {
  Graph graph;
  std::int64_t ir_version = 0;
  std::int64_t opset = 0;            // of the standard operators; 0 when the file imports none
  std::size_t weights = 0;           // constant values that a node reads or that are outputs
  std::size_t weight_bytes = 0;      // of those whose size is known
  std::size_t subgraph_values = 0;   // values inside subgraphs, which are not planned
  std::vector<std::string> symbols;  // symbolic dimensions of the model, bound or not, in order of appearance
  std::vector<std::string> unknown;  // values whose shape stayed unknown; only with allow_unknown
};

// Throws FormatError: format_error{offset} for bytes that are not a model, path_escape{path},
// file_truncated{path}, size_mismatch (a tensor with more or less data than its shape says), limit_exceeded
// (nesting). ArgumentError: graph_cycle, undefined_value, duplicate_value, unknown_shape (it names the values,
// and says what to bind), binding_conflict (a symbol bound to two sizes, or to a negative one),
// invalid_argument (a binding of a symbol that the model does not have), size_mismatch (the file's shape
// contradicts the inferred one), size_overflow.
BERTH_EXPORT OnnxModel read_onnx(std::string_view bytes, const OnnxOptions& options = {}, std::string_view name = "the model");

// The operators whose shapes can be inferred, sorted.
BERTH_EXPORT std::vector<std::string_view> onnx_shape_rules();

}  // namespace berth
