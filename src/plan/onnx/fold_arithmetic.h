// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>

#include "plan/onnx/call.h"

// The arithmetic of fold.h. REQUIRES for all: the first output is small and its shape is known.
namespace berth::internal::plan::onnx {

inline constexpr float kUnknownFloat = std::numeric_limits<float>::quiet_NaN();

void fold_unary(Call& call);
void fold_binary(Call& call);  // of equal lengths, or with a scalar
void fold_cast(Call& call);
void fold_reduce(Call& call);  // of a list, to a scalar

}  // namespace berth::internal::plan::onnx
