// SPDX-License-Identifier: Apache-2.0
#include "plan/onnx/slice_range.h"

#include <algorithm>

namespace berth::internal::plan::onnx {

namespace {

struct Bounds {
  bool given = false;
  const std::vector<std::int64_t>* starts = nullptr;
  const std::vector<std::int64_t>* ends = nullptr;
  std::vector<std::int64_t> axes;
  std::vector<std::int64_t> steps;
};

// Before opset 10 they are attributes. Partly unknown bounds count as unknown.
std::optional<Bounds> read_bounds(const Call& call) {
  Bounds bounds;
  const bool old = call.has_attribute("starts");
  bounds.starts = old ? call.int_list("starts") : call.ints(1);
  bounds.ends = old ? call.int_list("ends") : call.ints(2);
  const Call::Given axes = call.attribute_or_input("axes", old ? SIZE_MAX : 3);
  if (axes.given && axes.ints == nullptr) return std::nullopt;
  if (bounds.starts == nullptr && bounds.ends == nullptr && !axes.given) return std::nullopt;
  const std::size_t count = axes.given ? axes.ints->size() : (bounds.starts != nullptr ? bounds.starts : bounds.ends)->size();
  for (std::size_t i = 0; i < count; ++i) bounds.axes.push_back(axes.given ? (*axes.ints)[i] : static_cast<std::int64_t>(i));
  const auto* const steps = old ? nullptr : call.ints(4);
  const std::int64_t otherwise = !old && call.has(4) ? kUnknownInt : 1;
  bounds.steps = steps != nullptr ? *steps : std::vector<std::int64_t>(count, otherwise);
  const auto fits = [&](const auto* list) { return list == nullptr || list->size() == count; };
  return fits(bounds.starts) && fits(bounds.ends) && bounds.steps.size() == count ? std::optional(bounds) : std::nullopt;
}

std::int64_t from_front(std::int64_t at, std::int64_t size) { return at < 0 ? at + size : at; }

// Clamps bounds to the ends. REQUIRES: size is known.
AxisRange clamp(std::int64_t start, std::int64_t end, std::int64_t step, std::int64_t size) {
  if (size == 0) return {0, step, 0};
  const bool forward = step > 0;
  const std::int64_t first = std::clamp<std::int64_t>(from_front(start, size), 0, forward ? size : size - 1);
  const std::int64_t last = std::clamp<std::int64_t>(from_front(end, size), forward ? 0 : -1, forward ? size : size - 1);
  const std::int64_t distance = forward ? last - first : first - last;
  if (distance <= 0) return {first, step, 0};
  const std::uint64_t pace = forward ? static_cast<std::uint64_t>(step) : 0 - static_cast<std::uint64_t>(step);
  return {first, step, static_cast<std::int64_t>((static_cast<std::uint64_t>(distance) - 1) / pace + 1)};
}

AxisRange range_along(const Bounds& bounds, std::size_t i, std::int64_t size) {
  const std::int64_t start = bounds.starts == nullptr ? kUnknownInt : (*bounds.starts)[i];
  const std::int64_t end = bounds.ends == nullptr ? kUnknownInt : (*bounds.ends)[i];
  const std::int64_t step = bounds.steps[i];
  if (size == kUnknownDim || start == kUnknownInt || end == kUnknownInt || step == kUnknownInt) return {};
  return clamp(start, end, step, size);
}

}  // namespace

std::optional<std::vector<AxisRange>> slice_ranges(const Call& call) {
  const TensorType& x = call.in(0);
  const auto bounds = read_bounds(call);
  if (!x.ranked || !bounds) return std::nullopt;
  std::vector<AxisRange> ranges;
  for (const std::int64_t dim : x.dims) ranges.push_back({0, 1, dim});
  for (std::size_t i = 0; i < bounds->axes.size(); ++i) {
    const auto axis = axis_of(bounds->axes[i], x.dims.size());
    if (!axis || bounds->steps[i] == 0) return std::nullopt;
    ranges[*axis] = range_along(*bounds, i, x.dims[*axis]);
  }
  return ranges;
}

}  // namespace berth::internal::plan::onnx
