// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "berth/observe/html.h"
#include "html/address_map.h"

// Runs a trace once through an allocator and records everything that a report shows.
namespace berth::internal::observe {

struct TracedBlock {
  std::uint64_t begin = 0;  // [begin, end) in events; a block that is never freed ends with the trace
  std::uint64_t end = 0;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t serial = 0;
  std::uint16_t tag = 0;  // index in Trace::words
};

struct TraceRun {
  std::uint64_t events = 0;
  std::vector<TracedBlock> blocks = {};  // in order of allocation, without those of 0 bytes
  std::string strategy = {};
  std::vector<html::LivePoint> committed = {};  // sampled by event; empty when the allocator has no statistics
  std::uint64_t peak_committed_bytes = 0;

  std::uint64_t peak_event = 0;  // the first with the most live bytes
  std::uint64_t peak_bytes = 0;
};

TraceRun run_trace(const Trace& trace, const TraceHtmlOptions& options);

// The blocks that are live after an event, in order of allocation.
std::vector<const TracedBlock*> live_at(const TraceRun& run, std::uint64_t event);

}  // namespace berth::internal::observe
