// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "support/everything.h"

// The simple model of storages: a buffer is a vector of bytes, a view is the list of the offsets of its
// elements. There are no strides. Everything a storage does is done here in the obvious way.
namespace berth::testing {

struct ModelView {
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> at;  // byte offset of each element in its buffer, in row-major order
  DType dtype = DType::u8;

  std::size_t count() const { return at.size(); }
};

using ModelBytes = std::vector<std::byte>;

inline std::int64_t product(const std::vector<std::int64_t>& dims) {
  std::int64_t n = 1;
  for (const std::int64_t d : dims) n *= d;
  return n;
}

// Calls visit(index) for every index of a shape in row-major order.
template <class Visit>
void for_each_index(const std::vector<std::int64_t>& shape, Visit visit) {
  if (product(shape) == 0) return;
  std::vector<std::int64_t> index(shape.size(), 0);
  while (true) {
    visit(index);
    std::size_t axis = shape.size();
    while (axis > 0 && ++index[axis - 1] == shape[axis - 1]) index[--axis] = 0;
    if (axis == 0) return;
  }
}

inline std::size_t flat(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& index) {
  std::int64_t n = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) n = n * shape[i] + index[i];
  return static_cast<std::size_t>(n);
}

// A view whose element at `index` is the one that `from(index)` names in `view`.
template <class From>
ModelView remap(const ModelView& view, const std::vector<std::int64_t>& shape, From from) {
  ModelView made{shape, {}, view.dtype};
  for_each_index(shape, [&](const std::vector<std::int64_t>& index) { made.at.push_back(view.at[flat(view.shape, from(index))]); });
  return made;
}

// The indices that begin:end:step selects from an axis, by counting. A bound that is left out is past
// everything on its side.
inline std::vector<std::int64_t> python_range(std::optional<std::int64_t> begin, std::optional<std::int64_t> end, std::int64_t step,
                                              std::int64_t size) {
  std::vector<std::int64_t> taken;
  const std::int64_t far = step > 0 ? 1000 : -1000;
  const auto from_back = [&](std::int64_t i) { return i < 0 ? i + size : i; };
  std::int64_t i = begin ? from_back(*begin) : -far;
  std::int64_t stop = end ? from_back(*end) : far;
  if (step > 0) {
    i = std::max<std::int64_t>(i, 0);
    stop = std::min(stop, size);
    for (; i < stop; i += step) taken.push_back(i);
  } else {
    i = std::min(i, size - 1);
    stop = std::max<std::int64_t>(stop, -1);
    for (; i > stop; i += step) taken.push_back(i);
  }
  return taken;
}

inline bool reaches_twice(const ModelView& view) { return std::set<std::int64_t>(view.at.begin(), view.at.end()).size() != view.at.size(); }

// Whether there are strides that give the elements of `view`, in their order, another shape.
inline bool is_strided(const ModelView& view, const std::vector<std::int64_t>& shape) {
  if (view.at.empty()) return true;
  std::vector<std::int64_t> strides(shape.size(), 0);
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] == 1) continue;
    std::vector<std::int64_t> one(shape.size(), 0);
    one[axis] = 1;
    strides[axis] = view.at[flat(shape, one)] - view.at[0];
  }
  bool strided = true;
  for_each_index(shape, [&](const std::vector<std::int64_t>& index) {
    std::int64_t expected = view.at[0];
    for (std::size_t axis = 0; axis < shape.size(); ++axis) expected += index[axis] * strides[axis];
    strided = strided && view.at[flat(shape, index)] == expected;
  });
  return strided;
}

// Reads all of the source before writing any of the target.
inline void model_copy(const ModelView& source, const ModelBytes& from, const ModelView& target, ModelBytes& to) {
  std::vector<std::byte> converted(16 * source.count());
  for (std::size_t i = 0; i < source.count(); ++i)
    convert_element(&from[static_cast<std::size_t>(source.at[i])], source.dtype, &converted[16 * i], target.dtype);
  for (std::size_t i = 0; i < source.count(); ++i)
    std::memcpy(&to[static_cast<std::size_t>(target.at[i])], &converted[16 * i], size_bytes(target.dtype));
}

}  // namespace berth::testing
