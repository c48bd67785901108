// SPDX-License-Identifier: Apache-2.0
#pragma once

// The pruning rules of the search. Each can be turned off, for tests and measurements: the answer is the same,
// and it takes longer.
namespace berth::internal::plan::pack::exact {

struct Rules {
  bool split = true;      // intervals of time that no item crosses any more are solved independently
  bool rerank = true;     // and ranked again
  bool remember = true;   // no-goods: failed states are not searched twice
  bool dominance = true;  // an item that could stay where it rests is not skipped
  bool edge = true;       // if only one item can be lowest in a section, all others are above it
  bool support = true;    // an item that rests on nothing placed is lifted to the lowest top that it could rest
                          // on
  bool fewest = true;     // every other restart decides first where the fewest items can be the lowest (pick.h)
  bool jump = true;       // backjumping over decisions that have no part in a failure
};

}  // namespace berth::internal::plan::pack::exact
