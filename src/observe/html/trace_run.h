// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "berth/observe/html.h"
#include "html/address_map.h"

// A trace run once through an allocator, with everything written down that a page shows.
namespace berth::internal::observe {

struct TracedBlock {
  std::uint64_t begin = 0;  // events, half open; one that is never freed ends with the trace
  std::uint64_t end = 0;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t serial = 0;
  std::uint16_t tag = 0;  // in RecordedTrace::words
};

struct TraceRun {
  std::uint64_t events = 0;
  std::vector<TracedBlock> blocks = {};  // in the order of their allocations; none without bytes
  std::string strategy = {};
  std::vector<html::LivePoint> committed = {};  // by event, at some of them; empty where the allocator does not say
  std::uint64_t peak_committed_bytes = 0;

  std::uint64_t peak_event = 0;  // the first at which the most bytes live
  std::uint64_t peak_bytes = 0;
};

TraceRun run_trace(const RecordedTrace& trace, const TracePageOptions& options);

// Those that live once an event is done, in order.
std::vector<const TracedBlock*> live_at(const TraceRun& run, std::uint64_t event);

}  // namespace berth::internal::observe
