// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "berth/memory/stats.h"

// Parses what Stats::write_json wrote, in a snapshot file and in the live file of a process.
namespace berth::internal::observe {

// `number(name)` returns the member of that name; the caller decides what a missing member means.
template <class Number>
Stats stats_from(const Number& number) {
  return {.in_use_bytes = number("in_use_bytes"),
          .cached_bytes = number("cached_bytes"),
          .committed_bytes = number("committed_bytes"),
          .peak_in_use_bytes = number("peak_in_use_bytes"),
          .peak_committed_bytes = number("peak_committed_bytes"),
          .table_bytes = number("table_bytes"),
          .live_blocks = number("live_blocks"),
          .allocations = number("allocations"),
          .frees = number("frees"),
          .failures = number("failures"),
          .commits = number("commits"),
          .decommits = number("decommits")};
}

}  // namespace berth::internal::observe
