// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "plan/onnx/call.h"

// What a Slice node takes along each axis, however it says so. Shapes, constants and views are made from the same.
namespace berth::internal::plan::onnx {

struct AxisRange {
  std::int64_t start = 0;
  std::int64_t step = 1;
  std::int64_t count = kUnknownDim;
};

// One for each axis of the input; nothing when the rank is not known or the node makes no sense. Where only the bounds are not known, the
// count is kUnknownDim.
std::optional<std::vector<AxisRange>> slice_ranges(const Call& call);

}  // namespace berth::internal::plan::onnx
