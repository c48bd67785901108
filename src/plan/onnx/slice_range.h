// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "plan/onnx/call.h"

// The range that a Slice node selects along each axis, whatever its form. Shape inference, constant folding and
// views all use it.
namespace berth::internal::plan::onnx {

struct AxisRange {
  std::int64_t start = 0;
  std::int64_t step = 1;
  std::int64_t count = kUnknownDim;
};

// One for each axis of the input; nothing when the rank is unknown or the node is invalid. Where only the
// bounds are unknown, the count is kUnknownDim.
std::optional<std::vector<AxisRange>> slice_ranges(const Call& call);

}  // namespace berth::internal::plan::onnx
