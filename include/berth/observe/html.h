// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "berth/device/device.h"
#include "berth/export.h"
#include "berth/observe/profiler.h"
#include "berth/observe/snapshot_file.h"
#include "berth/observe/trace_reader.h"

// Pages to look at: where the memory went, in one file each that asks nothing of a network. Live bytes over time as areas by tag, the
// addresses over time with what is under the pointer, who holds the most, how the free memory is scattered. Light and dark, usable with
// the keyboard; half a million events stay smooth.
//
//     std::string file = trace_html(read_trace(bytes, "model.csv"), "model.csv", {.device = "cpu"});
//
// Names from outside (tags, titles) are escaped. Any thread.
namespace berth {

struct TracePageOptions {
  Device device = {};
  std::string strategy = {};  // as for replay (observe/replay.h)
  std::size_t scale = 1;      // sizes are divided by it
};

// Replays the trace once, untimed and untouched, to learn where the strategy puts each block. Without tags in the trace, blocks are told
// apart by size. Of more than 250,000 blocks the map has those that hold the most bytes for longest, and says so; the areas are of all.
// Throws as plan_replay and replay do.
BERTH_EXPORT std::string trace_html(const RecordedTrace& trace, const std::string& title, const TracePageOptions& options = {});

// Of every pool: what lies where in its addresses, and how its free memory is scattered; of all together: the largest blocks, and who holds
// how much. Where ages are known (observe/tracker.h), also when what lives now was allocated.
BERTH_EXPORT std::string snapshot_html(const ProcessSnapshot& snapshot, const std::string& title);

// Bytes in use over time by tag, where the profiler took samples; by device, tag and site; copies by the way they took; requests by size.
BERTH_EXPORT std::string profile_html(const Profile& profile, const std::string& title);

}  // namespace berth
