// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "berth/base/checked.h"
#include "plan/onnx/element_type.h"
#include "plan/onnx/rules/rules.h"

namespace berth::internal::plan::onnx::rules {

namespace {

bool is_negative(std::int64_t dim) { return dim < 0 && dim != kUnknownInt; }

std::optional<DimList> dims_from(const std::vector<std::int64_t>* ints) {
  if (ints == nullptr) return std::nullopt;
  DimList dims;
  for (const std::int64_t dim : *ints) {
    if (is_negative(dim)) return std::nullopt;
    dims.push_back(dim < 0 ? kUnknownDim : dim);
  }
  return dims;
}

// Clamps `start` or `end` of a Shape node.
std::size_t clamped(std::int64_t at, std::size_t rank) {
  const auto size = static_cast<std::int64_t>(rank);
  if (at < 0) at = at < -size ? 0 : at + size;
  return static_cast<std::size_t>(std::min(at, size));
}

// floor(size * scale), computed as runtimes do.
std::int64_t scaled_dim(std::int64_t size, float scale) {
  if (size == kUnknownDim || !(scale > 0)) return kUnknownDim;
  const double exact = std::floor(static_cast<double>(static_cast<float>(size) * scale));
  return exact < 9.0e18 ? static_cast<std::int64_t>(exact) : kUnknownDim;
}

void set_scaled(Call& call, const std::vector<float>* scales, const DimList& axes) {
  const TensorType& x = call.in(0);
  DimList dims = x.dims;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<std::size_t>(axes[i]);
    dims[axis] = scales != nullptr && scales->size() == axes.size() ? scaled_dim(x.dims[axis], (*scales)[i]) : kUnknownDim;
  }
  call.set(0, x.elem, std::move(dims));
}

// The axes that an attribute or an input names, normalized, or all. Nothing when one is out of range, or they
// are unknown.
std::optional<DimList> axes_or_all(const Call::Given& given, std::size_t rank) {
  if (given.given && given.ints == nullptr) return std::nullopt;
  DimList axes;
  for (std::size_t i = 0; i < (given.given ? given.ints->size() : rank); ++i) {
    const auto axis = axis_of(given.given ? (*given.ints)[i] : static_cast<std::int64_t>(i), rank);
    if (!axis) return std::nullopt;
    axes.push_back(static_cast<std::int64_t>(*axis));
  }
  return axes;
}

void set_resized(Call& call, const std::vector<std::int64_t>& sizes, const DimList& axes) {
  const TensorType& x = call.in(0);
  DimList dims = x.dims;
  // Other policies keep the aspect ratio, and make some sizes smaller than given.
  const bool stretch = call.text("keep_aspect_ratio_policy", "stretch") == "stretch";
  for (std::size_t i = 0; i < axes.size(); ++i)
    dims[static_cast<std::size_t>(axes[i])] = stretch && sizes.size() == axes.size() && sizes[i] >= 0 ? sizes[i] : kUnknownDim;
  call.set(0, x.elem, std::move(dims));
}

const std::vector<float>* floats_of(const Call& call, std::size_t input) {
  const Contents* const known = call.contents(input);
  return known == nullptr || known->floats.empty() ? nullptr : &known->floats;
}

bool has_elements(const Call& call, std::size_t input) {
  const TensorType& type = call.in(input);
  return call.has(input) && !(type.ranked && type.dims == DimList{0});
}

}  // namespace

void shape(Call& call) {
  const TensorType& x = call.in(0);
  call.set(0, kInt64, {kUnknownDim});
  if (!x.ranked) return;
  const std::size_t begin = clamped(call.integer("start", 0), x.dims.size());
  const std::size_t end = clamped(call.integer("end", INT64_MAX), x.dims.size());
  Contents contents;
  for (std::size_t i = begin; i < end; ++i) contents.ints.push_back(x.dims[i] == kUnknownDim ? kUnknownInt : x.dims[i]);
  call.set(0, kInt64, {static_cast<std::int64_t>(contents.ints.size())});
  call.set_contents(0, std::move(contents));
}

void size(Call& call) {
  const TensorType& x = call.in(0);
  call.set(0, kInt64, {});
  const std::int64_t count = x.ranked ? dim_product(x.dims, 0, x.dims.size()) : kUnknownDim;
  if (count != kUnknownDim) call.set_contents(0, {.ints = {count}, .floats = {}});
}

void constant(Call& call) {
  const ModelNode& node = call.node();
  if (const Attribute* const value = node.find("value"); value != nullptr && value->tensor != nullptr) {
    call.set(0, value->tensor->elem, value->tensor->dims);
    if (auto contents = read_contents(*value->tensor)) call.set_contents(0, std::move(*contents));
  } else if (const Attribute* const sparse = node.find("sparse_value"); sparse != nullptr && sparse->sparse != nullptr) {
    call.set(0, sparse->sparse->values.elem, sparse->sparse->dims);
  } else if (const Attribute* const one = node.find("value_int")) {
    call.set(0, kInt64, {});
    call.set_contents(0, {.ints = {one->i}, .floats = {}});
  } else if (const Attribute* const ints = node.find("value_ints")) {
    call.set(0, kInt64, {static_cast<std::int64_t>(ints->ints.size())});
    if (ints->ints.size() <= kMostContents) call.set_contents(0, {.ints = ints->ints, .floats = {}});
  } else if (const Attribute* const real = node.find("value_float")) {
    call.set(0, kFloat, {});
    call.set_contents(0, {.ints = {}, .floats = {real->f}});
  } else if (const Attribute* const floats = node.find("value_floats")) {
    call.set(0, kFloat, {static_cast<std::int64_t>(floats->floats.size())});
    if (floats->floats.size() <= kMostContents) call.set_contents(0, {.ints = {}, .floats = floats->floats});
  } else if (node.find("value_string") != nullptr) {
    call.set(0, kString, {});
  } else if (const Attribute* const strings = node.find("value_strings")) {
    call.set(0, kString, {static_cast<std::int64_t>(strings->string_count)});
  }
}

void constant_of_shape(Call& call) {
  const Attribute* const value = call.node().find("value");
  const std::int64_t elem = value != nullptr && value->tensor != nullptr ? value->tensor->elem : kFloat;
  call.set(0, TensorType::of(elem));
  if (auto dims = dims_from(call.ints(0)))
    call.set(0, elem, std::move(*dims));
  else if (const auto* const ints = call.ints(0))
    call.contradict(text::join("its shape has a dimension of ", *std::ranges::find_if(*ints, is_negative)));
}

void range(Call& call) {
  call.set(0, call.in(0).elem, {kUnknownDim});
  const auto one = [&](std::size_t input) -> std::optional<std::int64_t> {
    const auto* const ints = call.known_ints(input);
    return ints != nullptr && ints->size() == 1 ? std::optional(ints->front()) : std::nullopt;
  };
  const auto start = one(0), limit = one(1), delta = one(2);
  if (!start || !limit || !delta || *delta == 0 || *delta == INT64_MIN) return;
  std::int64_t distance = 0;
  if (__builtin_sub_overflow(*limit, *start, &distance) || distance == INT64_MIN) return;
  if (*delta < 0) distance = -distance;
  const std::int64_t pace = *delta < 0 ? -*delta : *delta;
  call.set(0, call.in(0).elem, {distance <= 0 ? 0 : (distance - 1) / pace + 1});
}

void random(Call& call) {
  const std::int64_t elem = call.integer("dtype", kFloat);
  call.set(0, TensorType::of(elem));
  if (auto dims = dims_from(call.int_list("shape"))) call.set(0, elem, std::move(*dims));
}

void like_first(Call& call) {
  TensorType y = call.in(0);
  y.elem = call.integer("dtype", y.elem);
  call.set(0, std::move(y));
}

void pad(Call& call) {
  const TensorType& x = call.in(0);
  call.set(0, TensorType::of(x.elem));
  if (!x.ranked) return;
  DimList dims(x.dims.size(), kUnknownDim);
  const Call::Given pads = call.attribute_or_input(call.has_attribute("paddings") ? "paddings" : "pads", 1);
  const auto axes = axes_or_all(call.attribute_or_input("axes", 3), x.dims.size());
  if (pads.ints != nullptr && axes && pads.ints->size() == 2 * axes->size()) {
    dims = x.dims;
    for (std::size_t i = 0; i < axes->size(); ++i) {
      std::int64_t& dim = dims[static_cast<std::size_t>((*axes)[i])];
      const auto front = try_add(dim, (*pads.ints)[i]);
      const auto all = front ? try_add(*front, (*pads.ints)[i + axes->size()]) : std::nullopt;
      dim = dim == kUnknownDim || !all || *all < 0 ? kUnknownDim : *all;
    }
  }
  call.set(0, x.elem, std::move(dims));
}

// In opset 10 the second input has the scales; later it is the region, followed by the scales and the sizes,
// one of which is given.
void resize(Call& call) {
  const TensorType& x = call.in(0);
  call.set(0, TensorType::of(x.elem));
  if (!x.ranked) return;
  const auto* const named = call.int_list("axes");
  const auto axes = axes_or_all({.given = named != nullptr, .ints = named}, x.dims.size());
  if (!axes) return;
  if (has_elements(call, 3)) {
    const auto* const sizes = call.ints(3);
    set_resized(call, sizes == nullptr ? std::vector<std::int64_t>() : *sizes, *axes);
  } else {
    set_scaled(call, floats_of(call, call.inputs() == 2 ? 1 : 2), *axes);
  }
}

// Before opset 9 the scales are an attribute; in opset 1 two of them.
void upsample(Call& call) {
  const TensorType& x = call.in(0);
  call.set(0, TensorType::of(x.elem));
  if (!x.ranked) return;
  const Attribute* const scales = call.node().find("scales");
  const auto axes = axes_or_all({}, x.dims.size());
  set_scaled(call, scales != nullptr ? &scales->floats : floats_of(call, 1), *axes);
}

// [N, C, …] sampled at a grid of [N, sizes…, dimensions].
void grid_sample(Call& call) {
  const TensorType& x = call.in(0);
  const TensorType& grid = call.in(1);
  call.set(0, TensorType::of(x.elem));
  if (!x.ranked || !grid.ranked || x.dims.size() < 3 || grid.dims.size() != x.dims.size()) return;
  DimList dims = {x.dims[0], x.dims[1]};
  dims.insert(dims.end(), grid.dims.begin() + 1, grid.dims.end() - 1);
  call.set(0, x.elem, std::move(dims));
}

}  // namespace berth::internal::plan::onnx::rules
