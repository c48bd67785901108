// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

// BERTH_CHECK is a list: words and options separated by commas, "abort,guard=16". Misuse reports read one word
// of it, at any time and without allocating; the default allocators read the rest
// (memory/default_allocator.cc). Any thread.
namespace berth::internal::record {

// Removes the first word from the list and returns it.
constexpr std::string_view take_word(std::string_view& list) noexcept {
  const std::size_t comma = list.find(',');
  const std::string_view word = list.substr(0, comma);
  list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
  return word;
}

constexpr bool has_word(std::string_view list, std::string_view word) noexcept {
  while (!list.empty()) {
    if (take_word(list) == word) return true;
  }
  return false;
}

}  // namespace berth::internal::record
