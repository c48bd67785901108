// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/onnx/call.h"

// Computes with small tensors, as models do with their own shapes: Shape, Gather, Mul, Concat, and then Reshape. Elements that are not
// known stay so, each by itself. Integers of 64 bits, and floats where a size is scaled; in both an overflow is not known.
namespace berth::internal::plan::onnx {

// Sets the contents of the outputs where they follow. REQUIRES: the shape rule has run.
void fold(Call& call);

}  // namespace berth::internal::plan::onnx
