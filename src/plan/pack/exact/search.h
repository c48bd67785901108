// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "plan/pack/exact/failed_states.h"
#include "plan/pack/exact/propagate.h"
#include "plan/pack/exact/ranking.h"

// Depth-first search for a packing within a capacity.
//
// A packing in which no buffer can be moved to a lower place has every buffer on the ground, on another, or where it is fixed; if there is a
// packing at all, there is such a one. It is built from below: of the items that rest on what is placed, the lowest is taken (of equally
// low ones that of least rank), and there are two cases. Either it lies there: all it meets lies above it. Or it does not: then it will
// rest on another item, and rises to the lowest top that any of these can have.
//
// No cleverness is needed for this to be right; docs/planning.md tells what makes it quick, and decision 0020 why each rule keeps the answer.
namespace berth::internal::plan::pack::exact {

enum class Verdict : std::uint8_t { found, none, stopped };

class Search {
 public:
  Search(const Instance& instance, const Rules& rules, const Patience& patience);

  // How items are ranked from now on. Failed states stay known.
  Ranking& ranking() noexcept { return ranking_; }

  // A packing within `capacity`, or that there is none, or neither after `steps` steps or when patience is over. REQUIRES: no capacity before was smaller.
  Verdict run(Units capacity, std::uint64_t steps);

  // Of the packing that was found.
  const std::vector<Units>& offsets() const noexcept { return offsets_; }
  std::uint64_t steps() const noexcept { return steps_; }  // so far

 private:
  struct Refuted {
    std::uint16_t id;    // could not be placed where it rested,
    BufferSet conflict;  // because of these
  };
  struct Frame {
    Items items = {};
    std::vector<Refuted> refuted = {};  // by this frame, in order
  };

  Frame& frame(std::size_t depth);
  Items first_items() const;
  bool solve_parts(std::size_t depth);
  bool solve(std::size_t depth);
  bool branch(std::size_t depth);
  bool place(std::size_t depth, std::size_t at);
  bool stack(const Items& from, std::size_t at, Items& to, Window& lifted);
  bool skip(Items& items, std::size_t at);
  bool is_known(const Items& items, FailedStates::Key& key);
  void explain_frame(const Frame& one);
  std::vector<Items> split(const Items& items) const;

  const Instance& instance_;
  const Rules& rules_;
  const Patience& patience_;
  Propagator propagator_;
  Ranking ranking_;
  FailedStates failed_;
  std::deque<Frame> frames_;
  std::vector<Units> offsets_;
  std::vector<int> crossing_;  // items that live on both sides of the start of a section
  std::vector<int> decided_;   // for each buffer, decisions about it that hold now
  Items lifted_;
  std::uint64_t steps_ = 0;
  std::uint64_t limit_ = 0;
  bool stopped_ = false;
};

}  // namespace berth::internal::plan::pack::exact
