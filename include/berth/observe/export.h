// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "berth/export.h"
#include "berth/memory/allocator.h"
#include "berth/observe/profiler.h"
#include "berth/observe/snapshot_file.h"
#include "berth/observe/trace_reader.h"

// Exports what berth has observed in formats that other tools read. All are pure functions from data to text,
// except to_prometheus(), which reads the allocators. Any thread.
//
// - Chrome's trace events, as JSON: open the file in https://ui.perfetto.dev or chrome://tracing. Memory is
//   drawn as counters over time, copies as slices.
// - CSV with a header line, for spreadsheets and data frames. Fields are quoted where necessary (RFC 4180).
// - Prometheus' text format (version 0.0.4), for a program that serves its own /metrics.
namespace berth {

// Counters by device and tag at each sample, and a slice for each copy that was kept.
BERTH_EXPORT std::string to_chrome_trace(const Profile& profile);
// A counter for each allocator: bytes in use after each event. With more than `most_points` events, the trace
// is divided into that many intervals, and the maximum and the last value of each are kept.
BERTH_EXPORT std::string to_chrome_trace(const Trace& trace, std::size_t most_points = 200'000);

// "device,tag,site,bytes,peak_bytes,blocks,allocations,frees,allocated_bytes,freed_bytes", a line for each tag,
// or for each site if there are sites.
BERTH_EXPORT std::string to_csv(const Profile& profile);
// "allocator,device,address,bytes,requested,tag,site,age_ns,stream,state", a line for each block.
BERTH_EXPORT std::string to_csv(const ProcessSnapshot& snapshot);

// The statistics of allocators: those of every strategy of the process, or those given. Metrics:
// berth_in_use_bytes, berth_cached_bytes, berth_committed_bytes, berth_peak_in_use_bytes,
// berth_peak_committed_bytes, berth_table_bytes, berth_live_blocks (gauges), berth_allocations_total,
// berth_frees_total, berth_failures_total, berth_commits_total, berth_decommits_total (counters), each with the
// labels device, allocator and id; berth_held_bytes and berth_held_blocks by tag.
BERTH_EXPORT std::string to_prometheus();
BERTH_EXPORT std::string to_prometheus(const std::vector<std::shared_ptr<Allocator>>& allocators);

}  // namespace berth
