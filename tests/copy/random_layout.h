// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "base/random.h"

// Random shapes and layouts of them, for copies on the host.
namespace berth::testing {

using namespace internal::base;

template <class T>
void shuffle(Random& random, std::vector<T>& values) {
  for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random.below(i)]);
}

// Up to six dimensions, with at most `most_elements` elements; sizes on both sides of the boundaries of
// vectors, tiles and panels are frequent.
inline std::vector<std::int64_t> random_shape(Random& random, std::int64_t most_elements) {
  static constexpr std::int64_t kSizes[] = {1,  1,  2,  2,  3,  3,  4,   5,   7,   8,   9,   15,  16,  17,  31,  33,
                                            40, 63, 64, 65, 66, 96, 127, 128, 129, 130, 200, 255, 257, 511, 513, 1025};
  std::vector<std::int64_t> shape(random.below(7));
  std::int64_t elements = 1;
  for (std::int64_t& size : shape) {
    do size = random.one_in(3) ? 1 + static_cast<std::int64_t>(random.below(12)) : kSizes[random.below(std::size(kSizes))];
    while (elements * size > most_elements && size > 1);
    elements *= size;
  }
  shuffle(random, shape);
  return shape;
}

inline std::int64_t count_elements(const std::vector<std::int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

// The same with at least `least_elements` elements.
inline std::vector<std::int64_t> random_large_shape(Random& random, std::int64_t least_elements, std::int64_t most_elements) {
  for (;;) {
    const std::vector<std::int64_t> shape = random_shape(random, most_elements);
    if (count_elements(shape) >= least_elements) return shape;
  }
}

struct Layout {
  std::vector<std::int64_t> strides;  // in elements
  std::int64_t first = 0;             // offset of the element at index 0, 0, … from the lowest one
  std::int64_t reach = 1;             // from the lowest element to one past the highest
};

enum class Repeats : unsigned char { never, axes };

// Axes in any order and direction, with gaps here and there. With Repeats::axes some have a stride of 0.
inline Layout random_layout(Random& random, const std::vector<std::int64_t>& shape, Repeats repeats) {
  Layout layout;
  layout.strides.resize(shape.size());
  std::vector<std::size_t> order(shape.size());
  std::iota(order.begin(), order.end(), 0);
  if (random.one_in(3))
    std::ranges::reverse(order);  // row-major
  else
    shuffle(random, order);
  std::int64_t step = random.one_in(4) ? 1 + static_cast<std::int64_t>(random.below(5)) : 1;
  for (const std::size_t axis : order) {
    layout.strides[axis] = step;
    if (repeats == Repeats::axes && random.one_in(8)) {
      layout.strides[axis] = 0;
      continue;
    }
    const std::int64_t walked = step * (shape[axis] - 1);
    layout.reach += walked;
    step = step * shape[axis] + (random.one_in(4) ? static_cast<std::int64_t>(random.below(9)) : 0);
    if (!random.one_in(4)) continue;
    layout.strides[axis] = -layout.strides[axis];
    layout.first += walked;
  }
  return layout;
}

// Calls visit(offset in one, offset in the other) for each index, in row-major order: the obvious loop.
template <class Visit>
void for_each_index(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& one, const std::vector<std::int64_t>& other,
                    Visit visit) {
  if (std::ranges::find(shape, 0) != shape.end()) return;
  std::vector<std::int64_t> index(shape.size(), 0);
  for (;;) {
    visit(std::inner_product(index.begin(), index.end(), one.begin(), std::int64_t{0}),
          std::inner_product(index.begin(), index.end(), other.begin(), std::int64_t{0}));
    std::size_t axis = shape.size();
    while (axis > 0 && ++index[axis - 1] == shape[axis - 1]) index[--axis] = 0;
    if (axis == 0) return;
  }
}

}  // namespace berth::testing
