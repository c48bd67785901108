// SPDX-License-Identifier: Apache-2.0
#include "berth/base/error.h"
#include "berth/plan/onnx.h"

// What stands in for the reader of ONNX models in a build without protozero.
namespace berth {

OnnxModel read_onnx(std::string_view /*bytes*/, const OnnxOptions& /*options*/, std::string_view name) {
  throw FormatError(ErrorCode::unsupported,
                    {"reading the ONNX model " + std::string(name), "berth was built without protozero, which reads such models",
                     "build it with BERTH_ONNX=ON, or pass CSV, graph text or JSON"});
}

std::vector<std::string_view> onnx_shape_rules() { return {}; }

}  // namespace berth
