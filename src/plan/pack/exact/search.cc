// SPDX-License-Identifier: Apache-2.0
#include "plan/pack/exact/search.h"

#include <algorithm>

namespace berth::internal::plan::pack::exact {

Search::Search(const Instance& instance, const Rules& rules, const Patience& patience)
    : instance_(instance),
      rules_(rules),
      patience_(patience),
      propagator_(instance, rules),
      ranking_(instance),
      picker_(instance.sections),
      failed_(instance.buffers.size()),
      offsets_(instance.buffers.size()),
      crossing_(instance.sections + 1),
      decided_(instance.buffers.size()) {}

Verdict Search::run(Units capacity, std::uint64_t steps) {
  propagator_.capacity = capacity;
  propagator_.placed.clear();
  propagator_.reasons.clear();
  std::fill(decided_.begin(), decided_.end(), 0);
  std::fill(crossing_.begin(), crossing_.end(), 0);
  std::fill(propagator_.totals.begin(), propagator_.totals.end(), 0);
  for (const ExactBuffer& one : instance_.buffers) {
    for (std::size_t s = one.begin + 1U; s < one.end; ++s) ++crossing_[s];
    for (std::size_t s = one.begin; s < one.end; ++s) propagator_.totals[s] += one.size;
  }
  limit_ = steps_ + steps;
  stopped_ = false;
  Items& items = frame(0).items;
  items = first_items();
  ranking_.rank(items);
  if (!propagator_.run(items, {0, static_cast<int>(instance_.sections)})) return Verdict::none;
  if (solve_parts(0)) return Verdict::found;
  return stopped_ ? Verdict::stopped : Verdict::none;
}

Search::Frame& Search::frame(std::size_t depth) {
  while (frames_.size() <= depth) frames_.emplace_back();
  return frames_[depth];
}

Items Search::first_items() const {
  Items items;
  for (std::size_t id = 0; id < instance_.buffers.size(); ++id) {
    const ExactBuffer& one = instance_.buffers[id];
    Item& item = items.emplace_back();
    item.size = one.size;
    item.begin = one.begin;
    item.end = one.end;
    item.id = static_cast<std::uint16_t>(id);
    while ((Units{1} << item.shift) < one.alignment) ++item.shift;
    item.fixed = one.fixed != kNotFixed;
    item.low = item.fixed ? one.fixed : 0;
  }
  std::stable_sort(items.begin(), items.end(), [](const Item& a, const Item& b) { return a.low < b.low; });
  return items;
}

// Cuts where no item crosses any more. The smallest part comes first: a quick failure saves the rest.
std::vector<Items> Search::split(const Items& items) const {
  std::vector<std::size_t> part_of(instance_.sections);
  std::size_t parts = 0;
  for (std::size_t s = 0; s < part_of.size(); ++s) {
    if (s != 0 && crossing_[s] == 0) ++parts;
    part_of[s] = parts;
  }
  std::vector<Items> out(parts + 1);
  for (const Item& item : items) out[part_of[item.begin]].push_back(item);
  std::erase_if(out, [](const Items& one) { return one.empty(); });
  std::stable_sort(out.begin(), out.end(), [](const Items& a, const Items& b) { return a.size() < b.size(); });
  return out;
}

bool Search::solve_parts(std::size_t depth) {
  if (!rules_.split) return solve(depth);
  std::vector<Items> parts = split(frame(depth).items);
  for (Items& part : parts) {
    frame(depth).items.swap(part);
    if (parts.size() > 1 && rules_.rerank) ranking_.rank(frame(depth).items);
    if (!solve(depth)) return false;
  }
  return true;
}

bool Search::is_known(const Items& items, FailedStates::Key& key) {
  if (!rules_.remember) return false;
  key = failed_.key_of(items);
  if (!failed_.has(key)) return false;
  if (!rules_.jump) return true;
  propagator_.conflict.clear();
  for (const Item& item : items) {
    propagator_.conflict |= propagator_.reasons[item.id];
    propagator_.conflict.add_common(instance_.together[item.id], propagator_.placed);
  }
  return true;
}

bool Search::solve(std::size_t depth) {
  Frame& one = frame(depth);
  if (one.items.empty()) return true;
  if (one.items.size() == 1) {
    offsets_[one.items[0].id] = one.items[0].low;
    return true;
  }
  FailedStates::Key key;
  if (is_known(one.items, key)) return false;
  one.refuted.clear();
  const std::size_t mark = propagator_.reasons.mark();
  const bool found = branch(depth);
  for (const Refuted& refuted : one.refuted) --decided_[refuted.id];
  propagator_.reasons.undo(mark);
  if (found || stopped_) return found;
  if (rules_.remember) failed_.add(key);
  if (rules_.jump) explain_frame(one);
  return false;
}

// Conflict analysis: turns the reason of the last failed skip into that of the frame. A decision in the
// conflict adds the no-good of its other branch.
void Search::explain_frame(const Frame& one) {
  BufferSet& conflict = propagator_.conflict;
  for (std::size_t i = one.refuted.size(); i-- > 0;) {
    const std::uint16_t id = one.refuted[i].id;
    if (!conflict.has(id)) continue;
    conflict |= one.refuted[i].conflict;
    const auto before = one.refuted.begin() + static_cast<std::ptrdiff_t>(i);
    const bool again = std::any_of(one.refuted.begin(), before, [&](const Refuted& earlier) { return earlier.id == id; });
    if (!again && decided_[id] == 0) conflict.remove(id);
  }
}

bool Search::branch(std::size_t depth) {
  Frame& one = frame(depth);
  while (true) {
    if (++steps_ >= limit_ || (steps_ % 1024 == 0 && patience_.over())) stopped_ = true;
    if (stopped_) return false;
    const std::size_t at = picker_.next(one.items, propagator_.capacity, propagator_.totals);
    if (at == one.items.size()) {
      propagator_.conflict.add_all();
      return false;
    }
    const std::uint16_t id = one.items[at].id;
    ++decided_[id];
    const bool found = place(depth, at);
    const bool jumps = rules_.jump && !propagator_.conflict.has(id);
    if (found || stopped_ || jumps) {
      --decided_[id];
      return found;
    }
    one.refuted.push_back({id, propagator_.conflict});
    if (one.items[at].fixed || !skip(one.items, at)) return false;
    FailedStates::Key key;
    if (is_known(one.items, key)) return false;
  }
}

// The items after placing the one at `at`: all it meets rest on it or are higher. False when it overlaps a
// fixed item.
bool Search::stack(const Items& from, std::size_t at, Items& to, Window& lifted) {
  const Item placed = from[at];
  const Units top = placed.low + placed.size;
  to.clear();
  lifted_.clear();
  std::size_t i = 0;
  for (; i < from.size() && from[i].low < top; ++i) {
    if (i == at) continue;
    Item item = from[i];
    if (!item.meets(placed)) {
      to.push_back(item);
      continue;
    }
    if (item.fixed) return false;
    item.low = item.aligned(top);
    item.rests = true;
    lifted.cover(item);
    lifted_.push_back(item);
    if (!rules_.jump) continue;
    // It is not below the placed item, either because of its own size, or because of what lifted it.
    BufferSet reason = item.size > placed.low ? BufferSet() : propagator_.reasons[item.id];
    if (from[i].low + from[i].size <= placed.low) reason.add_all();  // only without the rule `support`: anything could have lifted it
    reason.add(placed.id);
    propagator_.reasons.set(item.id, reason);
  }
  to.insert(to.end(), lifted_.begin(), lifted_.end());
  for (; i < from.size(); ++i) {
    to.push_back(from[i]);
    if (from[i].meets(placed) && from[i].low == from[i].aligned(top)) to.back().rests = true;
  }
  if (instance_.aligned) sort_items(to);
  return true;
}

bool Search::place(std::size_t depth, std::size_t at) {
  Items& to = frame(depth + 1).items;
  const Items& from = frames_[depth].items;
  const Item item = from[at];
  const std::size_t mark = propagator_.reasons.mark();
  Window lifted;
  bool found = stack(from, at, to, lifted);
  if (!found) {
    propagator_.conflict.clear();
    propagator_.conflict.add(item.id);
    propagator_.reasons.undo(mark);
    return false;
  }
  offsets_[item.id] = item.low;
  propagator_.placed.add(item.id);
  bool cut = false;
  for (std::size_t s = item.begin; s < item.end; ++s) propagator_.totals[s] -= item.size;
  for (std::size_t s = item.begin + 1U; s < item.end; ++s) cut = (--crossing_[s] == 0) || cut;
  found = propagator_.run(to, lifted) && (cut ? solve_parts(depth + 1) : solve(depth + 1));
  for (std::size_t s = item.begin; s < item.end; ++s) propagator_.totals[s] += item.size;
  for (std::size_t s = item.begin + 1U; s < item.end; ++s) ++crossing_[s];
  propagator_.placed.remove(item.id);
  propagator_.reasons.undo(mark);
  return found;
}

// The other branch: the item is not where it rests. False when it must be.
bool Search::skip(Items& items, std::size_t at) {
  const Item item = items[at];
  Units low = kNowhere;
  bool could_stay = true;
  for (const Item& other : items) {
    if (other.id == item.id || !other.meets(item)) continue;
    low = std::min(low, item.aligned(other.low + other.size));
    if (other.low < item.low + item.size) could_stay = false;
  }
  const bool must_stay = low == kNowhere || (could_stay && rules_.dominance);
  if (rules_.jump) {
    BufferSet reason = propagator_.reasons[item.id];
    reason.add(item.id);
    propagator_.add_neighbours(reason, items, item, must_stay ? kNowhere : low);
    propagator_.conflict = reason;
    propagator_.reasons.set(item.id, reason);
  }
  if (must_stay) return false;
  items[at].low = low;
  items[at].rests = false;
  for (; at + 1 < items.size() && items[at + 1].low < low; ++at) std::swap(items[at], items[at + 1]);
  return propagator_.run(items, {item.begin, item.end});
}

}  // namespace berth::internal::plan::pack::exact
