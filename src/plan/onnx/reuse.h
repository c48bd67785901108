// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "berth/plan/graph.h"
#include "plan/onnx/call.h"

// Which operators may write over an input, hand it on, or be a range of it. Only what the table names, and only for the version of an
// operator that does what the table says: anything else gets bytes of its own.
namespace berth::internal::plan::onnx {

// Adds the options of a standard operator, and the inputs that it never reads, to `node`, whose lists stand as those of the call do.
// `outputs` are the types that the outputs turned out to have. Options that name a value with kNoValue are left out.
void add_sharing(const Call& call, const std::vector<TensorType>& outputs, GraphNode& node);

}  // namespace berth::internal::plan::onnx
