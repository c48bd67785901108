// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "plan/pack/exact/item.h"
#include "plan/pack/exact/reasons.h"
#include "plan/pack/exact/rules.h"

// What follows from a state without a decision: items that must lie higher than they knew, or that there is no room.
namespace berth::planning::exact {

// Items by `low`, least first.
using Items = std::vector<Item>;
void sort_items(Items& items);  // of which few are out of order

class Propagator {
 public:
  Propagator(const Instance& instance, const Rules& rules)
      : instance_(instance), rules_(rules), reasons(instance.buffers.size()), sections_(instance.sections) {}

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

 private:
  // What one pass over the items finds out about each section.
  struct Sections {
    explicit Sections(std::size_t count) : sum(count), need(count), low1(count), low2(count), first(count), floor(count) {}
    std::vector<Units> sum;    // of sizes
    std::vector<Units> need;   // the lowest top that all of its items together can have
    std::vector<Units> low1;   // the least `low`, whose item is `first`
    std::vector<Units> low2;   // the second least
    std::vector<int> first;    // by position
    std::vector<Units> floor;  // what all but the first must lie above; 0: nothing is known
  };

  bool run_sections(Items& items, Window window);
  void scan(const Items& items, Window window);
  bool has_room(const Items& items, Window window);
  bool find_floors(const Items& items, Window window);
  bool lift_to_floors(Items& items, Window window, Window& lifted);
  bool lift_unsupported(Items& items, Window& lifted);
  void explain_section(BufferSet& out, const Items& items, int section) const;

  Sections sections_;
  std::vector<std::pair<std::size_t, BufferSet>> fresh_;  // scratch of lift_to_floors
  std::vector<std::pair<std::size_t, Units>> tops_;       // and of lift_unsupported
};

}  // namespace berth::planning::exact
