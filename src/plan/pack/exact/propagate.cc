// SPDX-License-Identifier: Apache-2.0
#include "plan/pack/exact/propagate.h"

#include <algorithm>
#include <array>
#include <bit>

namespace berth::internal::plan::pack::exact {

namespace {

// A set of sections, as a bit set.
struct SectionBits {
  std::array<std::uint64_t, kMostBuffers / 64> words = {};  // no more sections than buffers: one begins in each

  SectionBits() = default;
  explicit SectionBits(Window window) {
    for (std::size_t word = word_of(window.begin); word <= word_of(window.end - 1); ++word)
      words[word] = mask(word, window.begin, window.end);
  }

  static std::size_t word_of(int section) noexcept { return static_cast<std::size_t>(section) / 64; }

  // The bits of sections [begin, end) in a word that has some of them.
  static std::uint64_t mask(std::size_t word, int begin, int end) noexcept {
    const int base = static_cast<int>(word) * 64;
    const int skip = std::max(begin - base, 0);
    const int past = std::max(base + 64 - end, 0);
    return (~std::uint64_t{0} << skip) & (~std::uint64_t{0} >> past);
  }

  template <class Visit>
  static void for_each(std::size_t word, std::uint64_t bits, Visit visit) {
    for (; bits != 0; bits &= bits - 1) visit(static_cast<int>(word) * 64 + std::countr_zero(bits));
  }
};

}  // namespace

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
    if (!has_room(items, window)) return false;
    if (!rules_.edge) return true;
    const Window floors = find_floors(items, window);
    if (floors.empty()) return true;
    Window lifted;
    if (!lift_to_floors(items, floors, lifted)) return false;
    if (lifted.empty()) return true;
    sort_items(items);
    window = lifted;
  }
  return true;
}

// From the lowest up: each item of a section needs room for itself and all above it. The loop over sections has
// neither branches nor calls, so that it vectorizes: most of the search time is spent here.
bool Propagator::has_room(const Items& items, Window window) {
  Units* __restrict const room = room_.data();
  const Units* __restrict const total = totals.data();
  for (int s = window.begin; s < window.end; ++s) room[s] = capacity - total[s];
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Item& item = items[i];
    const int begin = std::max<int>(item.begin, window.begin);
    const int end = std::min<int>(item.end, window.end);
    const Units size = item.size;
    Units least = kNowhere;
    for (int s = begin; s < end; ++s) {
      least = std::min(least, room[s]);
      room[s] += size;
    }
    if (least >= item.low) continue;
    if (rules_.jump) explain_room(items, static_cast<int>(std::min_element(room + begin, room + end) - room));
    return false;
  }
  return true;
}

// Explains why there is no room in a section: the reasons of its highest items, as many as are needed to exceed
// the capacity.
void Propagator::explain_room(const Items& items, int section) {
  conflict.clear();
  Units sum = 0;
  for (auto item = items.rbegin(); item != items.rend(); ++item) {
    if (item->begin > section || item->end <= section) continue;
    conflict |= reasons[item->id];
    sum += item->size;
    if (sum + item->low > capacity) break;
  }
}

// Where the second lowest item cannot be lowest, the first is, and all others are above it. Returns a window
// around all such sections.
Window Propagator::find_floors(const Items& items, Window window) {
  Window floors;
  SectionBits none(window);  // sections of which no item has been seen yet,
  SectionBits one;           // sections of which one item has been seen
  int left = 2 * (window.end - window.begin);
  std::fill(floor_.begin() + window.begin, floor_.begin() + window.end, 0);
  for (std::size_t i = 0; i < items.size() && left != 0; ++i) {
    const int begin = std::max<int>(items[i].begin, window.begin);
    const int end = std::min<int>(items[i].end, window.end);
    if (begin >= end) continue;
    for (std::size_t word = SectionBits::word_of(begin); word <= SectionBits::word_of(end - 1); ++word) {
      const std::uint64_t its = SectionBits::mask(word, begin, end);
      const std::uint64_t second = its & one.words[word];
      const std::uint64_t first = its & none.words[word];
      one.words[word] = (one.words[word] & ~its) | first;
      none.words[word] &= ~its;
      left -= std::popcount(first) + std::popcount(second);
      SectionBits::for_each(word, first, [&](int section) { first_[static_cast<std::size_t>(section)] = static_cast<int>(i); });
      SectionBits::for_each(word, second, [&](int section) {
        if (set_floor(items, section, items[i].low)) floors.cover(section);
      });
    }
  }
  return floors;
}

// False when the second lowest item, whose lower bound is `second`, can be below the first, or is above it
// anyway.
bool Propagator::set_floor(const Items& items, int section, Units second) {
  const auto s = static_cast<std::size_t>(section);
  const Item& first = items[static_cast<std::size_t>(first_[s])];
  const Units top = first.low + first.size;
  if (second + totals[s] <= capacity || top <= second) return false;
  floor_[s] = top;
  return true;
}

bool Propagator::lift_to_floors(Items& items, Window window, Window& lifted) {
  fresh_.clear();
  BufferSet reason;  // of the last explained section
  int explained = -1;
  const Units* __restrict const floor = floor_.data();
  const int* __restrict const first = first_.data();
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
      if (why != explained) {
        reason.clear();
        explain_section(reason, items, why);
        explained = why;
      }
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
  for (const auto& [id, why] : fresh_) reasons.set(id, why);
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

// An item that does not rest on a placed buffer will rest on another item: it is lifted to the lowest top of
// these. The items keep their order until all have been visited, so that an inner loop ends at the first that
// is too high.
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

}  // namespace berth::internal::plan::pack::exact
