// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the search does to be quick. Each can be left out: the answer is the same, and it takes longer. For tests and for measuring.
namespace berth::internal::plan::pack::exact {

struct Rules {
  bool split = true;      // parts of time that nothing crosses any more are solved apart
  bool rerank = true;     // and ranked anew
  bool remember = true;   // failed states are remembered
  bool dominance = true;  // what could stay where it rests is not skipped
  bool edge = true;       // if one alone can lie lowest in a section, the others lie above it
  bool support = true;    // what rests on nothing placed rises with the lowest top that it could rest on
  bool jump = true;       // decisions without a part in a failure are passed over
};

}  // namespace berth::internal::plan::pack::exact
