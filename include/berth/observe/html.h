// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "berth/device/device.h"
#include "berth/export.h"
#include "berth/observe/profiler.h"
#include "berth/observe/snapshot_file.h"
#include "berth/observe/trace_reader.h"

// Interactive HTML reports of memory use, each a self-contained file without network access: live bytes over
// time as areas by tag, addresses over time with details under the pointer, the largest holders, the
// fragmentation of free memory. Light and dark theme, keyboard navigation; half a million events stay smooth.
//
//     std::string file = trace_html(read_trace(bytes, "model.csv"), "model.csv", {.device = "cpu"});
//
// Names from outside (tags, titles) are escaped. Any thread.
namespace berth {

struct TraceHtmlOptions {
  Device device = {};
  std::string strategy = {};  // as for replay (observe/replay.h)
  std::size_t scale = 1;      // sizes are divided by it
};

// Replays the trace once, without timing and without touching memory, to learn the address that the strategy
// gives each block. Without tags in the trace, blocks are grouped by size. With more than 250,000 blocks the
// address map has only those with the largest product of bytes and lifetime, and says so; the areas include
// all. Throws as plan_replay and replay do.
BERTH_EXPORT std::string trace_html(const Trace& trace, const std::string& title, const TraceHtmlOptions& options = {});

// For every pool: a map of its addresses, and its fragmentation; for all together: the largest blocks, and the
// bytes by tag and site. Where ages are known (observe/tracker.h), also when the live blocks were allocated.
BERTH_EXPORT std::string snapshot_html(const ProcessSnapshot& snapshot, const std::string& title);

// Bytes in use over time by tag, where the profiler took samples; by device, tag and site; copies by route;
// requests by size.
BERTH_EXPORT std::string profile_html(const Profile& profile, const std::string& title);

}  // namespace berth
