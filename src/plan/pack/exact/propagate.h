// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "plan/pack/exact/item.h"
#include "plan/pack/exact/reasons.h"
#include "plan/pack/exact/rules.h"

// Constraint propagation: what follows from a state without a decision. Raises the lower bounds of items, or
// finds that there is no room.
namespace berth::internal::plan::pack::exact {

// Items by `low`, lowest first.
using Items = std::vector<Item>;
void sort_items(Items& items);  // REQUIRES: few are out of order

class Propagator {
 public:
  Propagator(const Instance& instance, const Rules& rules)
      : instance_(instance),
        rules_(rules),
        reasons(instance.buffers.size()),
        totals(instance.sections),
        room_(instance.sections),
        first_(instance.sections),
        floor_(instance.sections) {}

  // Lifts items to a fixed point; only sections of the window have changed. False when there is no room:
  // `conflict` is the reason.
  bool run(Items& items, Window window);

  // Adds the items and the placed buffers that `item` meets: everything that it could rest on depends on these.
  // Items of size `large` or more do not count.
  void add_neighbours(BufferSet& out, const Items& items, const Item& item, Units large) const;

 private:
  const Instance& instance_;
  const Rules& rules_;

 public:
  Reasons reasons;
  BufferSet placed;    // the placed buffers; maintained by the search
  BufferSet conflict;  // of the last failure: the no-good, decisions that cannot hold together
  Units capacity = 0;
  std::vector<Units> totals;  // of each section, the sum of its items' sizes; maintained by the search

 private:
  bool run_sections(Items& items, Window window);
  bool has_room(const Items& items, Window window);
  void explain_room(const Items& items, int section);
  Window find_floors(const Items& items, Window window);
  bool set_floor(const Items& items, int section, Units second);
  bool lift_to_floors(Items& items, Window window, Window& lifted);
  bool lift_unsupported(Items& items, Window& lifted);
  void explain_section(BufferSet& out, const Items& items, int section) const;

  // Of each section; only entries in the window of the last call are valid.
  std::vector<Units> room_;                               // the highest offset of the next item that leaves
                                                          // room for it and all above it
  std::vector<int> first_;                                // the position of the lowest item
  std::vector<Units> floor_;                              // lower bound of all but the first; 0: unknown
  std::vector<std::pair<std::size_t, BufferSet>> fresh_;  // scratch of lift_to_floors
  std::vector<std::pair<std::size_t, Units>> tops_;       // scratch of lift_unsupported
};

}  // namespace berth::internal::plan::pack::exact
