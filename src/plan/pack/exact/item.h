// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>

#include "plan/pack/exact/instance.h"

// A buffer that is not placed yet, as a state of the search sees it.
namespace berth::internal::plan::pack::exact {

inline constexpr Units kNowhere = std::numeric_limits<Units>::max() / 2;

struct Item {
  Units low = 0;  // it lies here or higher
  Units size = 0;
  std::uint16_t begin = 0;  // sections
  std::uint16_t end = 0;
  std::uint16_t id = 0;
  std::uint16_t rank = 0;  // among those of equal `low` the least is placed first
  std::uint8_t shift = 0;  // its alignment, as a power of two
  bool rests = true;       // at `low` it lies on what is placed, on the ground, or where it is fixed; else it lies on another item
  bool fixed = false;      // it lies at `low`

  bool meets(const Item& other) const noexcept { return begin < other.end && other.begin < end; }
  Units aligned(Units offset) const noexcept {
    const Units mask = (Units{1} << shift) - 1;
    return (offset + mask) & ~mask;
  }
};

// A stretch of sections.
struct Window {
  int begin = std::numeric_limits<int>::max();
  int end = 0;

  bool empty() const noexcept { return begin >= end; }
  void cover(const Item& item) noexcept {
    if (item.begin < begin) begin = item.begin;
    if (item.end > end) end = item.end;
  }
  void cover(int section) noexcept {
    if (section < begin) begin = section;
    if (section >= end) end = section + 1;
  }
};

}  // namespace berth::internal::plan::pack::exact
