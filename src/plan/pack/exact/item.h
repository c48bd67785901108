// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>

#include "plan/pack/exact/instance.h"

// A buffer that is not placed yet, in a state of the search.
namespace berth::internal::plan::pack::exact {

inline constexpr Units kNowhere = std::numeric_limits<Units>::max() / 2;

struct Item {
  Units low = 0;  // lower bound of its offset
  Units size = 0;
  std::uint16_t begin = 0;  // sections
  std::uint16_t end = 0;
  std::uint16_t id = 0;
  std::uint16_t rank = 0;  // ties of `low`: the least rank is placed first
  std::uint8_t shift = 0;  // log2 of its alignment
  bool rests = true;       // at `low` it rests on a placed buffer, on the ground, or at its fixed offset; else
                           // it will rest on another item
  bool fixed = false;      // its offset is `low`

  bool meets(const Item& other) const noexcept { return begin < other.end && other.begin < end; }
  Units aligned(Units offset) const noexcept {
    const Units mask = (Units{1} << shift) - 1;
    return (offset + mask) & ~mask;
  }
};

// An interval of sections.
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
