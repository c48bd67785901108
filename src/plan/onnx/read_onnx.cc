// SPDX-License-Identifier: Apache-2.0
#include "berth/plan/onnx.h"

#include "base/limited.h"
#include "plan/onnx/build_graph.h"
#include "plan/onnx/external_data.h"
#include "plan/onnx/functions.h"
#include "plan/onnx/inference.h"
#include "plan/onnx/model.h"
#include "plan/onnx/rules/rules.h"
#include "plan/onnx/symbols.h"

namespace berth {

using namespace internal;
using namespace internal::plan;

namespace {

OnnxModel read_within_limits(std::string_view bytes, const OnnxOptions& options, std::string_view name) {
  const onnx::Model model = onnx::read_model(bytes, name);
  const onnx::Functions functions(model);
  onnx::Symbols symbols(model, options, name);
  onnx::ExternalData external(options, name);
  onnx::Inference inference(model, symbols, functions, external, name);
  inference.run();
  OnnxModel out;
  out.ir_version = model.ir_version;
  out.opset = model.opset;
  out.subgraph_values = inference.subgraph_values();
  out.symbols = symbols.names();
  onnx::build_graph(model, inference, symbols, options, name, out);
  return out;
}

}  // namespace

OnnxModel read_onnx(std::string_view bytes, const OnnxOptions& options, std::string_view name) {
  return limited(bytes.size(), name, options.limits, [&] { return read_within_limits(bytes, options, name); });
}

std::vector<std::string_view> onnx_shape_rules() { return onnx::shape_rule_names(); }

}  // namespace berth
