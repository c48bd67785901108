// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

// Sorting of long lists by an integer: in passes over the list, which memory can follow, where a comparison sort
// jumps about in it.
namespace berth::internal::base {

// Sorts by key(item), an unsigned 64-bit number, stably: items of one key keep their order. Takes memory for a
// second list of the same length meanwhile. A list that is sorted already costs one pass.
template <class Item, class Key>
void radix_sort(std::vector<Item>& list, Key key) {
  constexpr int kBits = 11;  // of a digit: counts for each fit in the first-level cache
  constexpr std::size_t kDigits = std::size_t{1} << kBits;
  if (std::ranges::is_sorted(list, {}, key)) return;
  if (list.size() < kDigits) {
    std::ranges::stable_sort(list, {}, key);
    return;
  }
  std::uint64_t differ = 0;  // the bits in which any two keys differ
  for (const Item& item : list) differ |= key(item) ^ key(list.front());
  std::vector<Item> sorted(list.size());
  for (int shift = std::countr_zero(differ); shift < 64 && (differ >> shift) != 0; shift += kBits) {
    const auto digit = [&](const Item& item) { return (key(item) >> shift) & (kDigits - 1); };
    std::array<std::size_t, kDigits> place = {};
    for (const Item& item : list) ++place[digit(item)];
    std::size_t sum = 0;
    for (std::size_t& count : place) sum += std::exchange(count, sum);
    for (const Item& item : list) sorted[place[digit(item)]++] = item;
    std::swap(list, sorted);
  }
}

// Whether two of the numbers are equal. Sorts them by their upper bits, in which hashes differ evenly, and then those
// of equal upper bits.
inline bool have_repeats(std::vector<std::size_t> numbers) {
  constexpr int kShift = 42;
  radix_sort(numbers, [](std::size_t number) { return std::uint64_t{number} >> kShift; });
  for (auto begin = numbers.begin(); begin != numbers.end();) {
    const auto end = std::find_if(begin, numbers.end(), [&](std::size_t number) { return (number ^ *begin) >> kShift != 0; });
    std::sort(begin, end);
    if (std::adjacent_find(begin, end) != end) return true;
    begin = end;
  }
  return false;
}

}  // namespace berth::internal::base
