// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "berth/plan/graph.h"
#include "plan/onnx/call.h"

// Which operators may run in place, forward an input unchanged, or be a view of it. An allow-list, and only for
// the opsets in which an operator does what the table says: any other gets bytes of its own.
namespace berth::internal::plan::onnx {

// Adds the options of a standard operator, and the inputs that it never reads, to `node`, whose inputs and
// outputs correspond to those of the call. `outputs` are the final types of the outputs. Options on a value
// that is kNoValue are left out.
void add_reuse(const Call& call, const std::vector<TensorType>& outputs, GraphNode& node);

}  // namespace berth::internal::plan::onnx
