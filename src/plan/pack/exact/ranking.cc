// SPDX-License-Identifier: Apache-2.0
#include "plan/pack/exact/ranking.h"

#include <algorithm>

namespace berth::internal::plan::pack::exact {

Ranking::Ranking(const Instance& instance) : instance_(instance), factors_(instance.buffers.size()), totals_(instance.sections) {}

void Ranking::choose(RankBy by, std::size_t width, bool noise, Random& random) {
  constexpr std::uint64_t kWhole = 1024;
  constexpr std::uint64_t kNoise = kWhole / 20;
  by_ = by;
  width_ = width;
  // Integers, and later only products: they round the same way on every machine.
  const auto factor = [&] { return static_cast<double>(kWhole - kNoise + random.below(2 * kNoise + 1)); };
  for (Factors& one : factors_) one = noise ? Factors{factor(), factor(), random.next()} : Factors{};
}

void Ranking::sum_sections(std::span<const Item> items) {
  for (const Item& item : items) std::fill(totals_.begin() + item.begin, totals_.begin() + item.end, 0);
  for (const Item& item : items)
    for (std::size_t s = item.begin; s < item.end; ++s) totals_[s] += item.size;
}

Ranking::Entry Ranking::entry_of(const Item& item, std::size_t at) const {
  const Factors& factors = factors_[item.id];
  const double total = *std::max_element(totals_.begin() + item.begin, totals_.begin() + item.end);
  const double plain = instance_.buffers[item.id].widths[width_];
  const double width = plain * factors.width;
  const double area = plain * item.size * factors.area;
  Entry entry{{total, width, area}, factors.tie, item.id, static_cast<std::uint16_t>(at)};
  if (by_ == RankBy::taw) entry.keys = {total, area, width};
  if (by_ == RankBy::wat) entry.keys = {width, area, total};
  return entry;
}

void Ranking::rank(std::span<Item> items) {
  sum_sections(items);
  entries_.clear();
  for (std::size_t i = 0; i < items.size(); ++i) entries_.push_back(entry_of(items[i], i));
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
    if (a.keys != b.keys) return a.keys > b.keys;
    return a.tie != b.tie ? a.tie < b.tie : a.id < b.id;
  });
  for (std::size_t rank = 0; rank < entries_.size(); ++rank) items[entries_[rank].at].rank = static_cast<std::uint16_t>(rank);
}

}  // namespace berth::internal::plan::pack::exact
