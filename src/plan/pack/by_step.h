// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

// Sorts lists of buffers by a step of time. Comparing would take most of the time of a sweep over a million buffers;
// counting is linear.
namespace berth::internal::plan {

// Whether a table with an entry for each step takes no longer than a sort of so many.
inline bool are_dense(std::size_t count, std::size_t steps) { return steps / 8 <= count; }

// The list by rising key; equal keys stay as they were. REQUIRES: each key is below `limit`.
template <class Key>
std::vector<std::uint32_t> sorted_by_step(std::vector<std::uint32_t> list, std::size_t limit, Key key) {
  if (!are_dense(list.size(), limit)) {
    std::stable_sort(list.begin(), list.end(), [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
    return list;
  }
  std::vector<std::uint32_t> next(limit + 1, 0);  // where the next of each key goes
  for (const std::uint32_t index : list) ++next[key(index) + std::size_t{1}];
  std::partial_sum(next.begin(), next.end(), next.begin());
  std::vector<std::uint32_t> out(list.size());
  for (const std::uint32_t index : list) out[next[key(index)]++] = index;
  return out;
}

// Calls sort(first, last) for each range of equal keys that has several. REQUIRES: sorted by the key.
template <class Key, class Sort>
void sort_equal_steps(std::vector<std::uint32_t>& list, Key key, Sort sort) {
  for (auto first = list.begin(); first != list.end();) {
    auto last = first + 1;
    while (last != list.end() && key(*last) == key(*first)) ++last;
    if (last - first > 1) sort(first, last);
    first = last;
  }
}

}  // namespace berth::internal::plan
