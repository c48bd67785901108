// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <limits>

#include "os/system.h"

// How often things run while they are measured. A case has rounds; in each, everyone who is compared has a turn of a few runs, the least of
// which counts. So a slow moment of the machine meets all of them, and an interruption none.
namespace berth::internal::cli {

struct BenchPace {
  int rounds = 7;
  int runs = 3;                 // in a turn
  double enough_seconds = 0.3;  // no further run of a turn begins after this
  int small_calls = 100'000;    // of a run of many calls
};

// A turn: the least time of its runs. What `before` does ahead of each is not counted.
template <class Run, class Before>
double least_seconds(const BenchPace& pace, Run&& run, Before&& before) {
  double least = std::numeric_limits<double>::infinity();
  double all = 0;
  for (int i = 0; i < pace.runs && all < pace.enough_seconds; ++i) {
    before();
    const std::uint64_t begin_ns = os::steady_time_ns();
    run();
    const double seconds = static_cast<double>(std::max<std::uint64_t>(os::steady_time_ns() - begin_ns, 1)) * 1e-9;
    least = std::min(least, seconds);
    all += seconds;
  }
  return least;
}

template <class Run>
double least_seconds(const BenchPace& pace, Run&& run) {
  return least_seconds(pace, run, [] {});
}

}  // namespace berth::internal::cli
