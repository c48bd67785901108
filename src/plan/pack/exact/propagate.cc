// SPDX-License-Identifier: Apache-2.0
#include "plan/pack/exact/propagate.h"

#include <algorithm>

namespace berth::planning::exact {

void sort_items(Items& items) {
  for (std::size_t i = 1; i < items.size(); ++i) {
    if (items[i].low >= items[i - 1].low) continue;
    const Item moved = items[i];
    std::size_t at = i;
    for (; at > 0 && items[at - 1].low > moved.low; --at) items[at] = items[at - 1];
    items[at] = moved;
  }
}

bool Propagator::run(Items& items, Window window) {
  while (true) {
    if (!run_sections(items, window)) return false;
    if (!rules_.support) return true;
    Window lifted;
    if (!lift_unsupported(items, lifted)) return false;
    if (lifted.empty()) return true;
    sort_items(items);
    window = lifted;
  }
}

bool Propagator::run_sections(Items& items, Window window) {
  while (!window.empty()) {
    scan(items, window);
    if (!has_room(items, window)) return false;
    if (!rules_.edge || !find_floors(items, window)) return true;
    Window lifted;
    if (!lift_to_floors(items, window, lifted)) return false;
    if (lifted.empty()) return true;
    sort_items(items);
    window = lifted;
  }
  return true;
}

// From the highest down: of the items of a section, those from any one upwards need its `low` and all of their sizes. The loop over sections
// has neither branches nor calls, so that it becomes vector instructions.
void Propagator::scan(const Items& items, Window window) {
  Units* __restrict const sum = sections_.sum.data();
  Units* __restrict const need = sections_.need.data();
  Units* __restrict const low1 = sections_.low1.data();
  Units* __restrict const low2 = sections_.low2.data();
  int* __restrict const first = sections_.first.data();
  for (int s = window.begin; s < window.end; ++s) {
    sum[s] = need[s] = 0;
    low1[s] = low2[s] = kNowhere;
    first[s] = -1;
  }
  for (int i = static_cast<int>(items.size()) - 1; i >= 0; --i) {
    const Item& item = items[static_cast<std::size_t>(i)];
    const int begin = std::max<int>(item.begin, window.begin);
    const int end = std::min<int>(item.end, window.end);
    const Units size = item.size;
    const Units low = item.low;
    for (int s = begin; s < end; ++s) {
      sum[s] += size;
      need[s] = std::max(need[s], sum[s] + low);
      low2[s] = low1[s];
      low1[s] = low;
      first[s] = i;
    }
  }
}

bool Propagator::has_room(const Items& items, Window window) {
  const auto begin = sections_.need.begin() + window.begin;
  const auto end = sections_.need.begin() + window.end;
  if (*std::max_element(begin, end) <= capacity) return true;
  if (!rules_.jump) return false;
  const int section = window.begin + static_cast<int>(std::find_if(begin, end, [&](Units need) { return need > capacity; }) - begin);
  conflict.clear();
  Units sum = 0;
  for (auto item = items.rbegin(); item != items.rend(); ++item) {
    if (item->begin > section || item->end <= section) continue;
    conflict |= reasons[item->id];
    sum += item->size;
    if (sum + item->low > capacity) break;
  }
  return false;
}

// Where the second cannot be the lowest, the first is: the others lie above it.
bool Propagator::find_floors(const Items& items, Window window) {
  bool any = false;
  for (int at = window.begin; at < window.end; ++at) {
    const auto s = static_cast<std::size_t>(at);
    sections_.floor[s] = 0;
    if (sections_.low2[s] == kNowhere || sections_.low2[s] + sections_.sum[s] <= capacity) continue;
    const Units top = sections_.low1[s] + items[static_cast<std::size_t>(sections_.first[s])].size;
    if (top <= sections_.low2[s]) continue;
    sections_.floor[s] = top;
    any = true;
  }
  return any;
}

bool Propagator::lift_to_floors(Items& items, Window window, Window& lifted) {
  fresh_.clear();
  const Units* __restrict const floor = sections_.floor.data();
  const int* __restrict const first = sections_.first.data();
  for (std::size_t i = 0; i < items.size(); ++i) {
    Item& item = items[i];
    const int position = static_cast<int>(i);
    const int begin = std::max<int>(item.begin, window.begin);
    const int end = std::min<int>(item.end, window.end);
    Units most = 0;
    for (int s = begin; s < end; ++s) most = std::max(most, first[s] == position ? 0 : floor[s]);
    if (most <= item.low) continue;
    if (rules_.jump) {
      int why = begin;
      while (first[why] == position || floor[why] != most) ++why;
      BufferSet reason;
      explain_section(reason, items, why);
      fresh_.emplace_back(item.id, reason);
    }
    if (item.fixed) {
      conflict = fresh_.empty() ? BufferSet() : fresh_.back().second;
      return false;
    }
    item.low = item.aligned(most);
    item.rests = false;
    lifted.cover(item);
  }
  for (const auto& [id, reason] : fresh_) reasons.set(id, reason);
  return true;
}

void Propagator::explain_section(BufferSet& out, const Items& items, int section) const {
  for (const Item& item : items)
    if (item.begin <= section && section < item.end) out |= reasons[item.id];
}

void Propagator::add_neighbours(BufferSet& out, const Items& items, const Item& item, Units large) const {
  out.add_common(instance_.together[item.id], placed);
  for (const Item& other : items)
    if (other.id != item.id && other.size < large && item.meets(other)) out |= reasons[other.id];
}

// An item that does not rest on what is placed will rest on another: it rises to the lowest top of these. The items keep their order until all
// have been looked at, so that a look ends with the first that lies too high.
bool Propagator::lift_unsupported(Items& items, Window& lifted) {
  tops_.clear();
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Item& item = items[i];
    if (item.rests) continue;
    Units top = kNowhere;
    for (const Item& other : items) {
      if (other.low >= top || top <= item.low) break;
      if (other.id != item.id && item.meets(other)) top = std::min(top, item.aligned(other.low + other.size));
    }
    if (top <= item.low) continue;
    if (rules_.jump) {
      BufferSet reason = reasons[item.id];
      add_neighbours(reason, items, item, top);
      conflict = reason;
      reasons.set(item.id, reason);
    }
    if (top == kNowhere) return false;
    tops_.emplace_back(i, top);
  }
  for (const auto& [at, top] : tops_) {
    items[at].low = top;
    lifted.cover(items[at]);
  }
  return true;
}

}  // namespace berth::planning::exact
