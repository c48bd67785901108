// SPDX-License-Identifier: Apache-2.0
#include "plan/pack/exact/pick.h"

#include <algorithm>

namespace berth::internal::plan::pack::exact {

namespace {

std::size_t find_lowest(const Items& items) {
  std::size_t at = items.size();
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (at != items.size() && items[i].low > items[at].low) break;
    if (items[i].rests && (at == items.size() || items[i].rank < items[at].rank)) at = i;
  }
  return at;
}

// Whether another that it meets has room below it.
bool has_room_below(const Items& items, const Item& item) {
  for (std::size_t i = 0; i < items.size() && items[i].low < item.low; ++i)
    if (items[i].low + items[i].size <= item.low && items[i].meets(item)) return true;
  return false;
}

bool comes_before(const Item& one, const Item& other) noexcept {
  return one.low != other.low ? one.low < other.low : one.rank < other.rank;
}

// The fewest candidates of a section in which the item is one of them.
Units fewest_rivals(const Item& item, Units most, const Units* __restrict totals, const Units* __restrict candidates) {
  Units least = kNowhere;
  for (int s = item.begin; s < item.end; ++s) least = std::min(least, totals[s] <= most ? candidates[s] : kNowhere);
  return least;
}

}  // namespace

std::size_t Picker::next(const Items& items, Units capacity, const std::vector<Units>& totals) {
  const std::size_t lowest = find_lowest(items);
  if (pick_ == Pick::lowest || lowest == items.size()) return lowest;
  return fewest(items, capacity, totals.data(), lowest);
}

// An item can be the lowest of a section if all of its items have room from there up. Loops without branches, as in
// Propagator::has_room; they end at the first item that is too high everywhere.
std::size_t Picker::fewest(const Items& items, Units capacity, const Units* totals, std::size_t lowest) {
  Window window;
  for (const Item& item : items) window.cover(item);
  const Units highest = capacity - *std::min_element(totals + window.begin, totals + window.end);
  Units* __restrict const candidates = candidates_.data();
  std::fill(candidates + window.begin, candidates + window.end, 0);
  for (std::size_t i = 0; i < items.size() && items[i].low <= highest; ++i) {
    const Units most = capacity - items[i].low;
    for (int s = items[i].begin; s < items[i].end; ++s) candidates[s] += totals[s] <= most ? 1 : 0;
  }
  std::size_t best = lowest;
  Units least = fewest_rivals(items[best], capacity - items[best].low, totals, candidates);
  for (std::size_t i = 0; i < items.size() && items[i].low <= highest; ++i) {
    if (!items[i].rests) continue;
    const Units rivals = fewest_rivals(items[i], capacity - items[i].low, totals, candidates);
    if (rivals > least || (rivals == least && !comes_before(items[i], items[best]))) continue;
    if (has_room_below(items, items[i])) continue;
    least = rivals;
    best = i;
  }
  return best;
}

}  // namespace berth::internal::plan::pack::exact
