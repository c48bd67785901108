// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "plan/pack/packer.h"
#include "plan/reorder/model.h"

// Exact search for the order of a range of units, while the units before and after it stay.
namespace berth::internal::plan {

// Positions in an order, half-open.
struct OrderRange {
  std::size_t begin = 0;
  std::size_t end = 0;
};

struct RangeTask {
  const OrderModel& model;
  const std::vector<UnitId>& order;  // of all units
  OrderRange range;
  std::size_t below;        // only an order with a peak below this is of use
  std::size_t good_enough;  // the peak elsewhere: going below it gains nothing
  std::size_t most_states;  // limit on states, after which it gives up
  const Patience& patience;
};

struct RangeAnswer {
  // Of the range, with a peak below `below`: the least possible, or one that is good enough.
  std::optional<std::vector<UnitId>> order = {};
  bool gave_up = false;    // no order was found, but one may exist
  std::size_t states = 0;  // visited
};

// Best-first search over the sets of units that have run (dynamic programming): only the peak so far matters,
// not how a set was reached. The state with the least peak is expanded first, so the first full set is optimal.
// Units that do not raise the live bytes run at once.
RangeAnswer search_range(const RangeTask& task);

// Cuts an order behind each unit that, in every topological order, comes after all units before it and before
// all units behind it: the ranges between the cuts are independent.
std::vector<OrderRange> independent_ranges(const OrderModel& model, const std::vector<UnitId>& order);

}  // namespace berth::internal::plan
