// SPDX-License-Identifier: Apache-2.0
#include "berth/base/shape.h"

#include <algorithm>
#include <array>
#include <functional>
#include <vector>

#include "base/text.h"
#include "berth/base/checked.h"
#include "berth/base/error.h"

namespace berth {

using namespace internal;

namespace {

[[noreturn]] void throw_rank(std::size_t rank) {
  throw ArgumentError(ErrorCode::limit_exceeded,
                      {text::join("a shape of rank ", rank), text::join("the highest rank is ", kMaxRank), "merge dimensions first"},
                      {{"rank", rank}, {"limit", kMaxRank}});
}

[[noreturn]] void throw_negative(const Dims& dims, std::size_t axis, std::int64_t value) {
  throw ArgumentError(ErrorCode::invalid_shape,
                      {text::join("a shape ", dims.to_string()), text::join("dimension ", axis, " is ", value),
                       "dimensions are 0 or more; only reshape takes one -1, which it infers"},
                      {{"axis", axis}, {"value", value}});
}

}  // namespace

Dims::Dims(std::size_t rank, std::int64_t value) {
  if (rank > kMaxRank) throw_rank(rank);
  if (rank > kInline) heap_ = std::make_unique<std::int64_t[]>(rank);
  rank_ = rank;
  std::fill_n(data(), rank, value);
}

void Dims::assign(std::span<const std::int64_t> values) {
  if (values.size() > kMaxRank) throw_rank(values.size());
  // Allocate before changing anything, so that a failure leaves this list as it was.
  std::unique_ptr<std::int64_t[]> heap;
  if (values.size() > kInline) heap = std::make_unique<std::int64_t[]>(values.size());
  std::ranges::copy(values, heap ? heap.get() : inline_);
  heap_ = std::move(heap);
  rank_ = values.size();
}

void Dims::insert_slowly(std::size_t axis, std::int64_t value) {
  std::vector<std::int64_t> values(begin(), end());
  values.insert(values.begin() + static_cast<std::ptrdiff_t>(axis), value);
  assign(values);
}

void Dims::erase_slowly(std::size_t axis) {
  std::vector<std::int64_t> values(begin(), end());
  values.erase(values.begin() + static_cast<std::ptrdiff_t>(axis));
  assign(values);
}

std::string Dims::to_string() const {
  std::string out = "[";
  for (const std::int64_t value : *this) out += text::join(out.size() > 1 ? ", " : "", value);
  return out + "]";
}

void Shape::validate() const {
  for (std::size_t axis = 0; axis < rank(); ++axis) {
    if ((*this)[axis] < 0) throw_negative(*this, axis, (*this)[axis]);
  }
}

void Shape::insert(std::size_t axis, std::int64_t value) {
  if (value < 0) throw_negative(*this, axis, value);
  Dims::insert(axis, value);
}

void Shape::set(std::size_t axis, std::int64_t value) {
  if (value < 0) throw_negative(*this, axis, value);
  data()[axis] = value;
}

namespace {

// Not inlined: its strings would be in the frame of a function on every allocation's way.
[[noreturn, gnu::noinline]] void throw_too_large(const Shape& shape, std::size_t element_bytes) {
  throw ArgumentError(
      ErrorCode::size_overflow,
      {text::join("a shape ", shape.to_string(), element_bytes == 1 ? "" : text::join(" of ", element_bytes, "-byte elements")),
       element_bytes == 1 ? "it has more elements than 63 bits can count" : "it has more bytes than 63 bits can count",
       "check the dimensions"},
      {{"dims", shape.to_string()}, {"element_bytes", element_bytes}});
}

// The product of the dimensions and `factor`, when it is at most kMaxBytes.
std::optional<std::size_t> try_product(const Shape& shape, std::size_t factor) noexcept {
  std::size_t product = factor;
  bool overflow = false;
  for (const std::int64_t dim : shape) {
    if (dim == 0) return 0;  // even if the others overflow
    overflow = __builtin_mul_overflow(product, static_cast<std::size_t>(dim), &product) || overflow;
  }
  // A zero may still follow an overflow, so the overflow is decided at the end.
  if (overflow || product > kMaxBytes) return std::nullopt;
  return product;
}

std::size_t checked_product(const Shape& shape, std::size_t factor) {
  const auto product = try_product(shape, factor);
  if (!product) [[unlikely]]
    throw_too_large(shape, factor);
  return *product;
}

}  // namespace

std::size_t Shape::num_elements() const { return checked_product(*this, 1); }
std::size_t Shape::size_bytes(DType dtype) const { return checked_product(*this, berth::size_bytes(dtype)); }
std::optional<std::size_t> Shape::try_size_bytes(DType dtype) const noexcept { return try_product(*this, berth::size_bytes(dtype)); }

Strides Strides::contiguous(const Shape& shape) {
  Strides strides(shape.rank(), 1);
  std::int64_t step = 1;
  for (std::size_t axis = shape.rank(); axis-- > 0;) {
    strides.set(axis, step);
    // A shape with a zero may have dimensions whose product overflows; its strides are never used to reach an
    // element.
    step = try_multiply(step, std::max<std::int64_t>(shape[axis], 1)).value_or(1);
  }
  return strides;
}

Reach reach(const Shape& shape, const Strides& strides) {
  Reach result;
  if (std::ranges::find(shape, 0) != shape.end()) return result;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    const auto extent = try_multiply(shape[axis] - 1, strides[axis]);
    std::int64_t& end = strides[axis] < 0 ? result.lowest : result.highest;
    const auto moved = extent ? try_add(end, *extent) : std::nullopt;
    if (!moved) {
      throw ArgumentError(ErrorCode::out_of_bounds,
                          {text::join("strides ", strides.to_string(), " over a shape ", shape.to_string()),
                           "the last element is farther away than 63 bits can count", "use smaller strides"},
                          {{"axis", axis}, {"stride", strides[axis]}});
    }
    end = *moved;
  }
  return result;
}

std::optional<Extent> try_extent(const Shape& shape, const Strides& strides, DType dtype) noexcept {
  if (shape.rank() != strides.rank()) return std::nullopt;
  const auto bytes = shape.try_size_bytes(dtype);
  if (!bytes) return std::nullopt;
  if (*bytes == 0) return Extent{};
  if (is_contiguous(shape, strides)) return Extent{0, *bytes};
  const std::size_t size = berth::size_bytes(dtype);
  Extent extent{0, size};
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    // The stride's magnitude as an unsigned number: that of INT64_MIN fits too.
    const auto stride = static_cast<std::size_t>(strides[axis]);
    const std::size_t magnitude = strides[axis] < 0 ? 0 - stride : stride;
    const auto elements = try_multiply(magnitude, static_cast<std::size_t>(shape[axis] - 1));
    const auto distance = elements ? try_multiply(*elements, size) : std::nullopt;
    std::size_t& side = strides[axis] < 0 ? extent.before_bytes : extent.from_bytes;
    const auto sum = distance ? try_add(side, *distance) : std::nullopt;
    if (!sum || *sum > kMaxBytes) return std::nullopt;
    side = *sum;
  }
  if (extent.from_bytes > kMaxBytes - extent.before_bytes) return std::nullopt;
  return extent;
}

bool is_contiguous(const Shape& shape, const Strides& strides) noexcept {
  std::int64_t expected = 1;
  bool contiguous = true;
  for (std::size_t axis = shape.rank(); axis-- > 0;) {
    if (shape[axis] == 0) return true;
    if (shape[axis] == 1) continue;
    contiguous = contiguous && strides[axis] == expected;
    // When the product overflows, a zero follows or no storage has this shape.
    expected = try_multiply(expected, shape[axis]).value_or(0);
  }
  return contiguous;
}

namespace {

struct Axis {
  std::int64_t stride;    // > 0
  std::int64_t distance;  // between the first and the last index: size - 1
};

// Farther than any storage reaches; the sum of two such numbers still fits.
constexpr std::int64_t kFar = std::int64_t{1} << 61;

// Whether there are index differences d with |d_i| <= distance_i and sum(d_i * stride_i) == target, not all
// zero unless `apart` is true: a backtracking search. Axes are in descending order of stride; `reach_after[i]`
// < kFar bounds what axes i and later can contribute.
bool can_meet(std::span<const Axis> axes, std::span<const std::int64_t> reach_after, std::int64_t target, bool apart, int& effort) {
  if (axes.empty()) return target == 0 && apart;
  if (--effort < 0) return true;
  const Axis axis = axes.front();
  const std::int64_t rest = reach_after[1];
  // target - d * stride must lie within the reach of the remaining axes.
  const auto at_least = [&](std::int64_t bound) { return bound >= 0 ? (bound + axis.stride - 1) / axis.stride : -(-bound / axis.stride); };
  const std::int64_t from = std::max(at_least(target - rest), -axis.distance);
  const std::int64_t to = std::min(-at_least(-(target + rest)), axis.distance);
  for (std::int64_t d = from; d <= to; ++d) {
    if (can_meet(axes.subspan(1), reach_after.subspan(1), target - d * axis.stride, apart || d != 0, effort)) return true;
  }
  return false;
}

}  // namespace

bool overlaps_itself(const Shape& shape, const Strides& strides) noexcept {
  if (std::ranges::find(shape, 0) != shape.end()) return false;
  std::array<Axis, kMaxRank> axes;
  std::size_t count = 0;
  for (std::size_t i = 0; i < shape.rank(); ++i) {
    if (shape[i] == 1) continue;
    if (strides[i] == 0) return true;
    // |INT64_MIN| does not fit; no storage has such a stride with two elements along it.
    axes[count++] = {strides[i] < 0 ? -std::max<std::int64_t>(strides[i], -INT64_MAX) : strides[i], shape[i] - 1};
  }
  if (count <= 1) return false;
  const std::span<Axis> used(axes.data(), count);
  std::ranges::sort(used, std::greater<>(), &Axis::stride);
  std::array<std::int64_t, kMaxRank + 1> reach_after{};
  bool nested = true;  // each stride exceeds the reach of the smaller ones: usual, needs no search
  for (std::size_t i = count; i-- > 0;) {
    nested = nested && used[i].stride > reach_after[i + 1];
    const std::int64_t extent = try_multiply(used[i].stride, used[i].distance).value_or(kFar);
    if (extent >= kFar || reach_after[i + 1] + extent >= kFar) return true;  // no storage is that large
    reach_after[i] = reach_after[i + 1] + extent;
  }
  if (nested) return false;
  int effort = 20000;
  return can_meet(used, std::span(reach_after).first(count + 1), 0, false, effort);
}

}  // namespace berth
