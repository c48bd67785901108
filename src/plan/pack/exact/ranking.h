// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/random.h"
#include "plan/pack/exact/item.h"

// The branching heuristic: which of several buffers with the same lowest offset is placed first. T is the most
// bytes still to be placed in one of the buffer's sections, W its width, A its area.
namespace berth::internal::plan::pack::exact {

enum class RankBy : std::uint8_t { twa, taw, wat };

// The ranking of one restart.
class Ranking {
 public:
  explicit Ranking(const Instance& instance);

  // `noise`: W and A are perturbed by up to 5 % each, and ties are broken at random; T is exact.
  void choose(RankBy by, std::size_t width, bool noise, Random& random);

  // Ranks the items from 0 on. REQUIRES: no other item is in their sections.
  void rank(std::span<Item> items);

 private:
  struct Entry {
    std::array<double, 3> keys;
    std::uint64_t tie;
    std::uint16_t id;
    std::uint16_t at;  // position among the items
  };
  struct Factors {
    double width = 1;
    double area = 1;
    std::uint64_t tie = 0;
  };

  void sum_sections(std::span<const Item> items);
  Entry entry_of(const Item& item, std::size_t at) const;

  const Instance& instance_;
  RankBy by_ = RankBy::twa;
  std::size_t width_ = 0;
  std::vector<Factors> factors_;
  std::vector<Units> totals_;  // of each section
  std::vector<Entry> entries_;
};

}  // namespace berth::internal::plan::pack::exact
