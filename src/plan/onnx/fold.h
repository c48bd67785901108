// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/onnx/call.h"

// Constant folding of small tensors, as models compute with their own shapes: Shape, Gather, Mul, Concat, and
// then Reshape. Elements may be unknown individually. 64-bit integers, and floats where a size is scaled; in
// both an overflow makes an element unknown.
namespace berth::internal::plan::onnx {

// Sets the contents of the outputs where they can be computed. REQUIRES: the shape rule has run.
void fold(Call& call);

}  // namespace berth::internal::plan::onnx
