// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "plan/pack/exact/item.h"
#include "plan/pack/exact/reasons.h"
#include "plan/pack/exact/rules.h"

// What follows from a state without a decision: items that must lie higher than they knew, or that there is no room.
namespace berth::internal::plan::pack::exact {

// Items by `low`, least first.
using Items = std::vector<Item>;
void sort_items(Items& items);  // of which few are out of order

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

  // Lifts items until nothing more follows; only sections of the window have changed. False when there is no room: `conflict` says why.
  bool run(Items& items, Window window);

  // The items that `item` meets, and the placed buffers it meets: all that what it can rest on depends on. Items that are `large` or larger do
  // not count.
  void add_neighbours(BufferSet& out, const Items& items, const Item& item, Units large) const;

 private:
  const Instance& instance_;
  const Rules& rules_;

 public:
  Reasons reasons;
  BufferSet placed;    // kept by the search
  BufferSet conflict;  // of the last failure: the decisions that cannot hold together
  Units capacity = 0;
  std::vector<Units> totals;  // of each section, the bytes of its items; kept by the search

 private:
  bool run_sections(Items& items, Window window);
  bool has_room(const Items& items, Window window);
  void explain_room(const Items& items, int section);
  Window find_floors(const Items& items, Window window);
  bool set_floor(const Items& items, int section, Units second);
  bool lift_to_floors(Items& items, Window window, Window& lifted);
  bool lift_unsupported(Items& items, Window& lifted);
  void explain_section(BufferSet& out, const Items& items, int section) const;

  // Of each section; only what lies in the window of the last call means something.
  std::vector<Units> room_;                               // the highest place for the next item that leaves room for it and all above it
  std::vector<int> first_;                                // the position of the lowest item
  std::vector<Units> floor_;                              // what all but the first must lie above; 0: nothing is known
  std::vector<std::pair<std::size_t, BufferSet>> fresh_;  // scratch of lift_to_floors
  std::vector<std::pair<std::size_t, Units>> tops_;       // and of lift_unsupported
};

}  // namespace berth::internal::plan::pack::exact
