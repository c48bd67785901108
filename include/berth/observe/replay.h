// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "berth/base/json.h"
#include "berth/device/device.h"
#include "berth/export.h"
#include "berth/memory/trace.h"

// Replays a trace through an allocator and says what it cost: time, the memory that was taken from the device, how often. The events are
// first turned into a script, so that the loop that is timed does nothing but allocate and free.
//
//     ReplayScript script = plan_replay(trace.events);
//     ReplayResult pooled = replay(script, {.device = "cpu", .touch = true});
//     ReplayResult plain = replay(script, {.device = "cpu", .strategy = "malloc", .touch = true});
//
// Any thread; each replay makes an allocator of its own, but for the default strategy, which is the device's default allocator.
namespace berth {

// One event, ready to run. Blocks are kept in slots, numbered densely and used again once freed, so that the table stays small.
struct ReplayStep {
  std::size_t bytes = 0;
  std::uint32_t slot = 0;
  std::uint16_t stream = 0;  // 0: no stream
  bool allocates = false;

  friend bool operator==(const ReplayStep&, const ReplayStep&) = default;
};

struct ReplayScript {
  std::vector<ReplayStep> steps;
  std::uint32_t slots = 0;          // the most blocks that live at one time
  std::uint16_t streams = 0;        // beyond "no stream"; made on the device for the replay, where it has any
  std::size_t peak_live_bytes = 0;  // the most bytes, as asked for and scaled, that live at one time
};

// Divides sizes by `scale`; what had a byte keeps one. Throws FormatError when events do not pair, or live bytes or streams are too many;
// ArgumentError when the scale is 0.
BERTH_EXPORT ReplayScript plan_replay(const std::vector<TraceEvent>& events, std::size_t scale = 1);

// The strategy that is not berth's: the C library's aligned_alloc, aligned to 64 bytes, and free. For allocators that are preloaded.
inline constexpr const char* kMallocStrategy = "malloc";

struct ReplayOptions {
  Device device = {};
  std::string strategy = {};  // as for make_allocator, or "malloc"; empty: the device's default allocator
  bool touch = false;         // write one byte in every 4,096 of each block, between its allocation and the next event
  int threads = 1;            // each replays the script, with blocks and streams of its own, on one allocator that all share
  bool percentiles = true;    // run a second time, with a clock around every event
};

struct ReplayResult {
  Device device;
  std::string strategy;
  std::uint64_t events = 0;  // of one thread
  int threads = 1;
  bool touch = false;

  double wall_ms = 0;
  double ns_per_event = 0;  // wall time by events of one thread

  // What one event takes, by the second run: the call alone, without the touching and without the clock's own time.
  std::optional<double> p50_ns;
  std::optional<double> p99_ns;
  std::optional<double> p999_ns;

  std::size_t peak_live_bytes = 0;  // of the script, times the threads: an upper bound when there are several

  // By the allocator's own figures, unknown for malloc.
  std::optional<std::size_t> peak_committed_bytes;
  std::optional<double> ratio;  // peak_committed_bytes / peak_live_bytes
  std::optional<std::uint64_t> commits;
  std::optional<std::uint64_t> decommits;

  // How far the memory that the kernel has given the process rose during the run. Only when blocks were touched.
  std::optional<std::size_t> peak_resident_bytes;

  // When the last event was done: what the allocator says it holds from the device, and how much memory the kernel says is under its
  // addresses. Only when blocks were touched, and for an allocator with one range of addresses (Allocator::range). Something is wrong
  // when they are far apart.
  std::optional<std::size_t> end_committed_bytes;
  std::optional<std::size_t> end_resident_bytes;

  // The members under their names, unknown ones as null, into an object that is open.
  BERTH_EXPORT void write_json(JsonWriter& json) const;
};

// Throws OutOfMemory when the allocator or the device has not enough, after freeing what was allocated; ArgumentError for a strategy that
// is not known, threads below 1, malloc on another device than cpu; AccessError(wrong_device) for touching memory that the host may not
// reach; DeviceError when the device is not there.
BERTH_EXPORT ReplayResult replay(const ReplayScript& script, const ReplayOptions& options = {});

}  // namespace berth
