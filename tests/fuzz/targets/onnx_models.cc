// SPDX-License-Identifier: Apache-2.0
#include "berth/plan/onnx.h"
#include "fuzz/graphs.h"
#include "fuzz/protobuf.h"

// ONNX models. Read twice, once with unknown shapes allowed: what is accepted without is accepted with.
namespace berth::testing::fuzz {
namespace {

// "w..bin" and "w../n" are names; ".." alone leads out.
std::optional<std::uint64_t> external_size(const std::string& path) {
  require(!path.starts_with('/') && ("/" + path + "/").find("/../") == std::string::npos,
          "a path of external data stays in the model's folder");
  return path.size() < 16 ? std::optional<std::uint64_t>(5120) : std::nullopt;
}

void run(std::string_view bytes) {
  OnnxOptions options{.allow_unknown = true, .external_size = external_size};
  const OnnxModel lax = read_onnx(bytes, options);
  judge(lax.graph);
  require(lax.weights <= lax.graph.values.size(), "no more weights than values");
  options.allow_unknown = false;
  const OnnxModel strict = read_onnx(bytes, options);
  require(written(strict.graph) == written(lax.graph), "a model without unknown shapes is the same graph, whether they are allowed or not");
}

const Registered onnx_models({.name = "onnx_models",
                              .run = run,
                              .mutate = mutate_message,
                              .words = {
                                  "Reshape", "Concat",   "Slice", "Gather", "Split",           "Shape", "Expand", "Conv", "MatMul", "Loop",
                                  "If",      "Scan",     "Pad",   "Tile",   "ConstantOfShape", "Range", "Resize", "axis", "axes",   "perm",
                                  "to",      "location", "../",   "batch"}});

}  // namespace
}  // namespace berth::testing::fuzz
