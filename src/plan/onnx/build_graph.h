// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "berth/plan/onnx.h"
#include "plan/onnx/inference.h"

namespace berth::internal::plan::onnx {

// Builds a graph to plan from a model and its inferred types. Throws ArgumentError: unknown_shape, and what
// Graph::validate throws.
void build_graph(const Model& model, const Inference& inference, const Symbols& symbols, const OnnxOptions& options, std::string_view name,
                 OnnxModel& out);

}  // namespace berth::internal::plan::onnx
