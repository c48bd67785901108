// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "plan/pack/exact/propagate.h"

// The choice of the item that is decided next. A state does not depend on the order of decisions, so every item may be
// next that rests on what is placed and that no other can come to lie below.
namespace berth::internal::plan::pack::exact {

enum class Pick : std::uint8_t {
  lowest,  // the lowest: the packing rises like water
  fewest,  // in a section that has the fewest items which can be its lowest: a wrong decision fails there soon
};

class Picker {
 public:
  explicit Picker(std::size_t sections) : candidates_(sections) {}

  void choose(Pick pick) noexcept { pick_ = pick; }

  // The position of the next item; of several as good ones, that of the least rank. The number of items if none
  // rests. REQUIRES: the items are sorted, and of every section in which one lives, `totals` is the sum of their sizes.
  std::size_t next(const Items& items, Units capacity, const std::vector<Units>& totals);

 private:
  std::size_t fewest(const Items& items, Units capacity, const Units* totals, std::size_t lowest);

  Pick pick_ = Pick::lowest;
  std::vector<Units> candidates_;  // of each section, how many items can be its lowest; scratch
};

}  // namespace berth::internal::plan::pack::exact
