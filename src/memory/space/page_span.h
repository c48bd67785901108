// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

// Offsets in a pool's address range.
namespace berth::internal::memory {

// [begin, end); empty unless told otherwise.
struct PageSpan {
  std::size_t begin = 0;
  std::size_t end = 0;

  std::size_t bytes() const noexcept { return end - begin; }
  bool empty() const noexcept { return begin == end; }
  friend bool operator==(const PageSpan&, const PageSpan&) = default;
};

// The least multiple of a power of two that is at least `offset`. Offsets are far from where that would wrap.
constexpr std::size_t round_up(std::size_t offset, std::size_t to) noexcept { return (offset + to - 1) & ~(to - 1); }

}  // namespace berth::internal::memory
