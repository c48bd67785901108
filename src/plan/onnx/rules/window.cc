// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "berth/base/checked.h"
#include "plan/onnx/element_type.h"
#include "plan/onnx/rules/rules.h"

namespace berth::internal::plan::onnx::rules {

namespace {

// The attributes of a window, one entry for each axis that it slides along.
struct Window {
  DimList kernel;
  DimList strides;
  DimList dilations;
  DimList pads;  // all begins, then all ends
  std::string_view auto_pad;
  bool ceil = false;
};

bool at_least(const DimList& list, std::int64_t least) {
  return std::ranges::all_of(list, [&](std::int64_t v) { return v >= least; });
}

DimList list_or(const Call& call, std::string_view name, std::size_t count, std::int64_t otherwise) {
  const auto* const list = call.int_list(name);
  return list == nullptr || list->empty() ? DimList(count, otherwise) : *list;
}

// Nothing when a list has the wrong length or an invalid number.
std::optional<Window> read_window(const Call& call, DimList kernel) {
  const std::size_t axes = kernel.size();
  Window window{std::move(kernel),
                list_or(call, "strides", axes, 1),
                list_or(call, "dilations", axes, 1),
                list_or(call, "pads", 2 * axes, 0),
                call.text("auto_pad", "NOTSET"),
                call.integer("ceil_mode", 0) != 0};
  if (window.strides.size() != axes || window.dilations.size() != axes || window.pads.size() != 2 * axes) return std::nullopt;
  if (!at_least(window.strides, 1) || !at_least(window.dilations, 1)) return std::nullopt;
  return window;
}

// (kernel - 1) * dilation + 1
std::int64_t reach_of(const Window& window, std::size_t axis) {
  if (window.kernel[axis] < 1) return kUnknownDim;
  return dim_sum(dim_product(window.kernel[axis] - 1, window.dilations[axis]), 1);
}

bool same_size(std::string_view auto_pad) { return auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER"; }

std::int64_t ceil_divide(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

// Windows narrower than their stride leave a gap at the end, which tools count differently.
bool leaves_gaps(const Window& window, std::size_t axis) {
  const std::int64_t reach = reach_of(window, axis);
  return reach == kUnknownDim || reach < window.strides[axis];
}

// The number of window positions along one axis. With `ceil` a window that extends past the end counts. If it
// starts behind the input, tools differ: then the file must declare the shape.
std::int64_t positions(const Window& window, std::size_t axis, std::int64_t size) {
  const std::int64_t stride = window.strides[axis];
  if (size == kUnknownDim) return kUnknownDim;
  if (same_size(window.auto_pad)) return window.ceil && leaves_gaps(window, axis) ? kUnknownDim : ceil_divide(size, stride);
  const bool padded = window.auto_pad != "VALID";
  const std::int64_t begin = padded ? window.pads[axis] : 0;
  const std::int64_t end = padded ? window.pads[axis + window.kernel.size()] : 0;
  const auto front = try_add(size, begin);
  const auto whole = front ? try_add(*front, end) : std::nullopt;
  const std::int64_t reach = reach_of(window, axis);
  if (!whole || reach == kUnknownDim || *whole < reach) return kUnknownDim;
  const std::int64_t room = *whole - reach;
  if (!window.ceil) return room / stride + 1;
  const std::int64_t last = dim_product(ceil_divide(room, stride), stride);
  return last == kUnknownDim || last >= *front ? kUnknownDim : last / stride + 1;
}

void set_slid(Call& call, const TensorType& x, std::int64_t channels, const Window& window, std::int64_t elem) {
  DimList dims = {x.dims[0], channels};
  for (std::size_t i = 0; i < window.kernel.size(); ++i) dims.push_back(positions(window, i, x.dims[i + 2]));
  call.set(0, elem, std::move(dims));
}

DimList kernel_of(const Call& call, const TensorType& weights) {
  const auto* const given = call.int_list("kernel_shape");
  return given != nullptr && !given->empty() ? *given : DimList(weights.dims.begin() + 2, weights.dims.end());
}

void set_conv(Call& call, const TensorType& x, const TensorType& w, std::int64_t elem) {
  call.set(0, TensorType::of(elem));
  if (!x.ranked || !w.ranked || x.dims.size() < 3 || x.dims.size() != w.dims.size()) return;
  const auto window = read_window(call, kernel_of(call, w));
  if (window && window->kernel.size() + 2 == x.dims.size()) set_slid(call, x, w.dims[0], *window, elem);
}

// stride * (size - 1) + output_padding + reach - pads
std::int64_t transposed_size(const Window& window, std::size_t axis, std::int64_t size, std::int64_t output_padding) {
  if (size < 1) return kUnknownDim;
  if (same_size(window.auto_pad)) return leaves_gaps(window, axis) ? kUnknownDim : dim_product(size, window.strides[axis]);
  const std::int64_t spread = dim_sum(dim_product(size - 1, window.strides[axis]), output_padding);
  const std::int64_t all = dim_sum(spread, reach_of(window, axis));
  if (all == kUnknownDim || window.auto_pad == "VALID") return all;
  const auto pads = try_add(window.pads[axis], window.pads[axis + window.kernel.size()]);
  return !pads || *pads < 0 || *pads > all ? kUnknownDim : all - *pads;
}

DimList transposed_sizes(const Call& call, const Window& window, const TensorType& x) {
  const std::size_t axes = window.kernel.size();
  const auto* const given = call.int_list("output_shape");
  if (given != nullptr && given->size() == axes && at_least(*given, 0)) return *given;
  const DimList extra = list_or(call, "output_padding", axes, 0);
  DimList sizes(axes, kUnknownDim);
  if (extra.size() != axes || given != nullptr) return sizes;
  for (std::size_t i = 0; i < axes; ++i) sizes[i] = transposed_size(window, i, x.dims[i + 2], extra[i]);
  return sizes;
}

}  // namespace

void conv(Call& call) { set_conv(call, call.in(0), call.in(1), call.in(0).elem); }
void conv_integer(Call& call) { set_conv(call, call.in(0), call.in(1), kInt32); }
void qlinear_conv(Call& call) { set_conv(call, call.in(0), call.in(3), call.in(7).elem); }

void conv_transpose(Call& call) {
  const TensorType& x = call.in(0);
  const TensorType& w = call.in(1);
  call.set(0, TensorType::of(x.elem));
  if (!x.ranked || !w.ranked || x.dims.size() < 3 || x.dims.size() != w.dims.size()) return;
  const auto window = read_window(call, kernel_of(call, w));
  if (!window || window->kernel.size() + 2 != x.dims.size()) return;
  const std::int64_t group = call.integer("group", 1);
  DimList dims = {x.dims[0], group > 0 ? dim_product(w.dims[1], group) : kUnknownDim};
  for (const std::int64_t size : transposed_sizes(call, *window, x)) dims.push_back(size);
  call.set(0, x.elem, std::move(dims));
}

// The second output of a MaxPool has the indices of the maxima.
void pool(Call& call) {
  const TensorType& x = call.in(0);
  call.set(0, TensorType::of(x.elem));
  call.set(1, TensorType::of(kInt64));
  const auto* const kernel = call.int_list("kernel_shape");
  if (!x.ranked || kernel == nullptr || x.dims.size() != kernel->size() + 2) return;
  const auto window = read_window(call, *kernel);
  if (!window) return;
  set_slid(call, x, x.dims[1], *window, x.elem);
  if (call.outputs() > 1) call.set(1, kInt64, call.out(0).dims);
}

void global_pool(Call& call) {
  TensorType y = call.in(0);
  for (std::size_t i = 2; i < y.dims.size(); ++i) y.dims[i] = 1;
  call.set(0, std::move(y));
}

void roi_pool(Call& call) {
  const TensorType& x = call.in(0);
  const TensorType& rois = call.in(1);
  const auto* const pooled = call.int_list("pooled_shape");
  call.set(0, TensorType::of(x.elem));
  if (!x.ranked || x.dims.size() != 4 || !rois.ranked || rois.dims.empty() || pooled == nullptr || pooled->size() != 2) return;
  if (at_least(*pooled, 0)) call.set(0, x.elem, {rois.dims[0], x.dims[1], (*pooled)[0], (*pooled)[1]});
}

void roi_align(Call& call) {
  const TensorType& x = call.in(0);
  const TensorType& rois = call.in(1);
  const DimList size = {call.integer("output_height", 1), call.integer("output_width", 1)};
  call.set(0, TensorType::of(x.elem));
  if (!x.ranked || x.dims.size() != 4 || !rois.ranked || rois.dims.empty() || !at_least(size, 0)) return;
  call.set(0, x.elem, {rois.dims[0], x.dims[1], size[0], size[1]});
}

}  // namespace berth::internal::plan::onnx::rules
