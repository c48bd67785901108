// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "plan/pack/exact/failed_states.h"
#include "plan/pack/exact/pick.h"
#include "plan/pack/exact/propagate.h"
#include "plan/pack/exact/ranking.h"

// Branch and bound, depth first, for a packing within a capacity. Not synchronized: one per thread.
//
// In a packing in which no buffer can be moved down, every buffer rests on the ground, on another, or is at its
// fixed offset; if there is a packing at all, there is such a one. It is built from below: among the items that
// rest on what is placed, one is taken that no other can come to lie below (pick.h), and the search branches in two. Either it stays
// there: all items it meets are above it. Or it does not: then it will rest on another item, and is lifted to
// the lowest top that any of these can have.
//
// Correctness needs only this; docs/planning.md describes the pruning that makes it fast, and decision 0020 why
// each rule keeps the answer.
namespace berth::internal::plan::pack::exact {

enum class Verdict : std::uint8_t { found, none, stopped };

class Search {
 public:
  Search(const Instance& instance, const Rules& rules, const Patience& patience);

  // The ranking and the choice of items for the next runs. Failed states stay known.
  Ranking& ranking() noexcept { return ranking_; }
  void choose(Pick pick) noexcept { picker_.choose(pick); }

  // Finds a packing within `capacity`, or proves that there is none, or stops after `steps` steps or when
  // patience is over. REQUIRES: no earlier capacity was smaller.
  Verdict run(Units capacity, std::uint64_t steps);

  // Of the packing that was found.
  const std::vector<Units>& offsets() const noexcept { return offsets_; }
  std::uint64_t steps() const noexcept { return steps_; }  // in all runs

 private:
  struct Refuted {
    std::uint16_t id;    // an item that could not be placed where it rested,
    BufferSet conflict;  // and the no-good that shows it
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
  Picker picker_;
  FailedStates failed_;
  std::deque<Frame> frames_;
  std::vector<Units> offsets_;
  std::vector<int> crossing_;  // number of items that cross the start of a section
  std::vector<int> decided_;   // for each buffer, the number of decisions about it in force
  Items lifted_;
  std::uint64_t steps_ = 0;
  std::uint64_t limit_ = 0;
  bool stopped_ = false;
};

}  // namespace berth::internal::plan::pack::exact
