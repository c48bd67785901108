// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "plan/pack/packer.h"
#include "plan/reorder/model.h"

// Exact search for the order of a stretch of units, while what runs before and after it stays.
namespace berth::internal::plan {

// Positions in an order, half open.
struct OrderRange {
  std::size_t begin = 0;
  std::size_t end = 0;
};

struct RangeTask {
  const OrderModel& model;
  const std::vector<UnitId>& order;  // of all units
  OrderRange range;
  std::size_t below;        // an order that does not need less is of no use
  std::size_t good_enough;  // no need to go below this: more is needed elsewhere
  std::size_t most_states;  // sets of units to look at, before it gives up
  const Patience& patience;
};

struct RangeAnswer {
  std::optional<std::vector<UnitId>> order = {};  // of the range, needing less than `below`: as little as can be, or what is good enough
  bool gave_up = false;                           // without an order: perhaps there is one
  std::size_t states = 0;                         // that were looked at
};

// Dynamic programming over sets of units that have run: how a set was reached does not matter, only the most that was needed. Sets are taken
// up by that, so that the first full set is the answer. What a set can do without growing, it does at once.
RangeAnswer search_range(const RangeTask& task);

// Cuts an order behind each unit that all before it precede and all behind it follow, in every order: the stretches between have nothing to
// do with one another.
std::vector<OrderRange> independent_ranges(const OrderModel& model, const std::vector<UnitId>& order);

}  // namespace berth::internal::plan
