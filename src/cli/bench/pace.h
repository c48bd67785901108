// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <limits>

#include "os/system.h"

// How often a benchmark runs. A case has rounds; in each round every contestant takes a turn of a few runs, of
// which the fastest counts. So a slow period of the machine affects all of them, and an interrupt none.
namespace berth::internal::cli {

struct BenchPace {
  int rounds = 7;
  int runs = 3;                 // per turn
  double enough_seconds = 0.3;  // no further run of a turn starts after this
  int small_calls = 100'000;    // per run of a `small` case
};

// A turn: the fastest of its runs. `before` runs ahead of each and is not timed.
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
