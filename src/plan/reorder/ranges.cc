// SPDX-License-Identifier: Apache-2.0
#include "plan/reorder/ranges.h"

#include <algorithm>
#include <queue>
#include <unordered_set>

#include "plan/reorder/walk.h"

namespace berth::internal::plan {

namespace {

constexpr std::uint32_t kNoState = UINT32_MAX;

// A set of units that have run, and how it was reached from its parent: by the units [forced_begin, forced_end)
// of one long list, which ran without a choice, and by one that was chosen.
struct State {
  std::uint32_t parent = kNoState;
  std::uint32_t size = 0;
  std::size_t forced_begin = 0;
  std::size_t forced_end = 0;
  std::uint32_t chosen = kNoUnit;
  std::size_t peak = 0;
};

// The priority queue of states to expand: the least peak first, then the largest set.
struct Open {
  std::size_t peak;
  std::uint32_t size;
  std::uint32_t state;
  bool operator<(const Open& other) const {
    if (peak != other.peak) return peak > other.peak;
    return size != other.size ? size < other.size : state > other.state;
  }
};

class RangeSearch {
 public:
  explicit RangeSearch(const RangeTask& task)
      : task_(task),
        units_(task.order.begin() + static_cast<std::ptrdiff_t>(task.range.begin),
               task.order.begin() + static_cast<std::ptrdiff_t>(task.range.end)),
        words_((units_.size() + 63) / 64),
        number_(task.model.units(), kNoUnit),
        at_start_(task.model) {
    for (std::size_t i = 0; i < task.range.begin; ++i) at_start_.run(task.order[i]);
    for (std::uint32_t i = 0; i < units_.size(); ++i) number_[units_[i]] = i;
    waits_.resize(units_.size(), 0);
    for (std::uint32_t i = 0; i < units_.size(); ++i)
      for (const UnitId u : task.model.before[units_[i]]) waits_[i] += number_[u] != kNoUnit;
  }

  RangeAnswer run() {
    const std::vector<std::uint64_t> nothing(words_, 0);
    add(nothing, {.peak = task_.good_enough});
    while (!open_.empty()) {
      const Open next = open_.top();
      open_.pop();
      if (states_[next.state].peak != next.peak || taken_up_[next.state]) continue;
      taken_up_[next.state] = true;
      if (states_[next.state].size == units_.size()) return {path_to(next.state), false, states_.size()};
      if (states_.size() > task_.most_states || task_.patience.over()) return {{}, true, states_.size()};
      take_up(next.state);
    }
    return {{}, false, states_.size()};
  }

 private:
  struct HashOf {
    const RangeSearch* search;
    std::size_t operator()(std::uint32_t state) const {
      std::uint64_t hash = 0x9e3779b97f4a7c15;
      for (std::size_t w = 0; w < search->words_; ++w) {
        hash = (hash ^ search->bits_[state * search->words_ + w]) * 0xff51afd7ed558ccd;
        hash ^= hash >> 32;
      }
      return hash;
    }
  };
  struct SameSet {
    const RangeSearch* search;
    bool operator()(std::uint32_t a, std::uint32_t b) const {
      const auto begin = search->bits_.begin();
      const auto words = static_cast<std::ptrdiff_t>(search->words_);
      return std::equal(begin + a * words, begin + (a + 1) * words, begin + b * words);
    }
  };

  // Keeps a state if its set is new, or was reached only with a larger peak.
  void add(const std::vector<std::uint64_t>& bits, const State& state) {
    const auto fresh = static_cast<std::uint32_t>(states_.size());
    bits_.insert(bits_.end(), bits.begin(), bits.end());
    states_.push_back(state);
    const auto [at, added] = known_.insert(fresh);
    if (!added) {
      bits_.resize(bits_.size() - words_);
      states_.pop_back();
      if (states_[*at].peak <= state.peak) return;
      states_[*at] = state;
    } else {
      taken_up_.push_back(false);
    }
    open_.push({state.peak, state.size, *at});
  }

  // A state that is being expanded, with everything derived from its set.
  struct Walker {
    State state;
    std::vector<std::uint64_t> bits;
    ForwardWalk walk;
    std::vector<std::uint32_t> waits;       // number of predecessors in the range that have not run
    std::vector<std::uint32_t> ready = {};  // units that can run next
  };

  Walker walker_at(std::uint32_t index) const {
    const auto bits = bits_.begin() + static_cast<std::ptrdiff_t>(index * words_);
    Walker at{states_[index], {bits, bits + static_cast<std::ptrdiff_t>(words_)}, at_start_, waits_};
    for (const std::uint32_t i : units_to(index)) run(at, i);
    for (std::uint32_t i = 0; i < units_.size(); ++i)
      if ((at.bits[i / 64] >> (i % 64) & 1) == 0 && at.waits[i] == 0) at.ready.push_back(i);
    return at;
  }

  void run(Walker& at, std::uint32_t i) const {
    at.walk.run(units_[i]);
    for (const UnitId next : task_.model.after[units_[i]])
      if (const std::uint32_t j = number_[next]; j != kNoUnit) --at.waits[j];
  }

  // Expands a state: forced units first, then one successor for each unit that can run.
  void take_up(std::uint32_t index) {
    Walker at = walker_at(index);
    at.state.parent = index;
    run_forced(at);
    if (at.state.size == units_.size()) return add(at.bits, at.state);
    for (const std::uint32_t i : at.ready) {
      State next = at.state;
      next.peak = std::max(next.peak, at.walk.preview(units_[i]).need_bytes);
      if (next.peak >= task_.below) continue;
      next.chosen = i;
      ++next.size;
      at.bits[i / 64] |= std::uint64_t{1} << (i % 64);
      add(at.bits, next);
      at.bits[i / 64] &= ~(std::uint64_t{1} << (i % 64));
    }
  }

  // A unit that does not raise the live bytes, and needs no more than the peak so far, is never better later:
  // it would free the same bytes then, and until then no fewer would be live.
  void run_forced(Walker& at) {
    at.state.chosen = kNoUnit;
    at.state.forced_begin = forced_.size();
    for (std::size_t k = 0; k < at.ready.size();) {
      const std::uint32_t i = at.ready[k];
      const StepCost cost = at.walk.preview(units_[i]);
      if (cost.live_bytes > at.walk.live_bytes() || cost.need_bytes > at.state.peak) {
        ++k;
        continue;
      }
      at.ready.erase(at.ready.begin() + static_cast<std::ptrdiff_t>(k));
      run(at, i);
      forced_.push_back(i);
      at.bits[i / 64] |= std::uint64_t{1} << (i % 64);
      ++at.state.size;
      for (const UnitId next : task_.model.after[units_[i]])
        if (const std::uint32_t j = number_[next]; j != kNoUnit && at.waits[j] == 0) at.ready.push_back(j);
      k = 0;  // the costs of others may have fallen
    }
    at.state.forced_end = forced_.size();
  }

  // The units of a state's set, in the order in which they ran, as indices into units_.
  std::vector<std::uint32_t> units_to(std::uint32_t state) const {
    std::vector<std::uint32_t> parents;
    for (std::uint32_t s = state; s != kNoState; s = states_[s].parent) parents.push_back(s);
    std::vector<std::uint32_t> out;
    out.reserve(states_[state].size);
    for (auto at = parents.rbegin(); at != parents.rend(); ++at) {
      const State& step = states_[*at];
      out.insert(out.end(), forced_.begin() + static_cast<std::ptrdiff_t>(step.forced_begin),
                 forced_.begin() + static_cast<std::ptrdiff_t>(step.forced_end));
      if (step.chosen != kNoUnit) out.push_back(step.chosen);
    }
    return out;
  }

  std::vector<UnitId> path_to(std::uint32_t state) const {
    std::vector<UnitId> order;
    for (const std::uint32_t i : units_to(state)) order.push_back(units_[i]);
    return order;
  }

  const RangeTask& task_;
  const std::vector<UnitId> units_;
  const std::size_t words_;
  std::vector<std::uint32_t> number_;  // of each unit of the model, its index in units_
  ForwardWalk at_start_;
  std::vector<std::uint32_t> waits_;  // predecessors in the range
  std::vector<State> states_;
  std::vector<bool> taken_up_;
  std::vector<std::uint64_t> bits_;    // the set of each state
  std::vector<std::uint32_t> forced_;  // the forced units of all states
  std::unordered_set<std::uint32_t, HashOf, SameSet> known_{64, HashOf{this}, SameSet{this}};
  std::priority_queue<Open> open_;
};

}  // namespace

RangeAnswer search_range(const RangeTask& task) { return RangeSearch(task).run(); }

std::vector<OrderRange> independent_ranges(const OrderModel& model, const std::vector<UnitId>& order) {
  const std::size_t count = order.size();
  std::vector<std::size_t> position(model.units());
  for (std::size_t i = 0; i < count; ++i) position[order[i]] = i;
  // Over all units behind a position, the minimum of the last position that each waits for.
  std::vector<std::size_t> least_wait(count + 1, count);
  for (std::size_t i = count; i-- > 0;) {
    std::size_t last = SIZE_MAX;  // no predecessor
    for (const UnitId u : model.before[order[i]]) last = last == SIZE_MAX ? position[u] : std::max(last, position[u]);
    least_wait[i] = last == SIZE_MAX ? 0 : std::min(least_wait[i + 1], last + 1);
  }
  std::vector<OrderRange> ranges;
  std::size_t begin = 0;
  // Over all units before a position, the maximum of the first position that waits for each.
  std::size_t first_use = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (first_use <= i && least_wait[i + 1] >= i + 1) {
      ranges.push_back({begin, i + 1});
      begin = i + 1;
    }
    std::size_t first = count;
    for (const UnitId u : model.after[order[i]]) first = std::min(first, position[u]);
    first_use = std::max(first_use, first);
  }
  if (begin != count) ranges.push_back({begin, count});
  return ranges;
}

}  // namespace berth::internal::plan
