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

// Replays a trace through an allocator and measures the cost: time, the memory committed from the device, the
// number of commits. The events are first compiled to a script, so that the timed loop does nothing but
// allocate and free.
//
//     ReplayScript script = plan_replay(trace.events);
//     ReplayResult pooled = replay(script, {.device = "cpu", .touch = true});
//     ReplayResult plain = replay(script, {.device = "cpu", .strategy = "malloc", .touch = true});
//
// Any thread. Each replay makes an allocator of its own, except for an empty strategy, which uses the device's
// default allocator.
namespace berth {

// One event, ready to run. Blocks are kept in a table; their dense indices are reused once freed, so that it
// stays small.
struct ReplayStep {
  std::size_t bytes = 0;
  std::uint32_t block = 0;
  std::uint16_t stream = 0;  // 0: no stream
  bool allocates = false;

  friend bool operator==(const ReplayStep&, const ReplayStep&) = default;
};

struct ReplayScript {
  std::vector<ReplayStep> steps;
  std::uint32_t blocks = 0;         // the peak number of live blocks
  std::uint16_t streams = 0;        // beside "no stream"; created for the replay if the device has streams
  std::size_t peak_live_bytes = 0;  // the peak of live bytes, as requested and scaled
};

// Divides sizes by `scale`; a nonzero size stays at least 1. Throws FormatError when events do not pair, or
// there are too many live bytes or streams; ArgumentError when the scale is 0.
BERTH_EXPORT ReplayScript plan_replay(const std::vector<TraceEvent>& events, std::size_t scale = 1);

// The one strategy that is not berth's: the C library's aligned_alloc, aligned to 64 bytes, and free. With
// LD_PRELOAD it measures other allocators.
inline constexpr const char* kMallocStrategy = "malloc";

struct ReplayOptions {
  Device device = {};
  std::string strategy = {};  // as for make_allocator, or "malloc"; empty: the device's default allocator
  bool touch = false;         // write one byte in every 4,096 of each block right after its allocation
  int threads = 1;            // each replays the script with its own blocks and streams, on one allocator
  bool percentiles = true;    // run a second time and time every event
};

struct ReplayResult {
  Device device;
  std::string strategy;
  std::uint64_t events = 0;  // of one thread
  int threads = 1;
  bool touch = false;

  double wall_ms = 0;
  double ns_per_event = 0;  // wall time / events of one thread

  // The time of one event, from the second run: the call alone, without touching, less the overhead of the
  // clock.
  std::optional<double> p50_ns;
  std::optional<double> p99_ns;
  std::optional<double> p999_ns;

  std::size_t peak_live_bytes = 0;  // of the script, times the threads: an upper bound with several threads

  // By the allocator's statistics, unknown for malloc.
  std::optional<std::size_t> peak_committed_bytes;
  std::optional<double> ratio;  // peak_committed_bytes / peak_live_bytes
  std::optional<std::uint64_t> commits;
  std::optional<std::uint64_t> decommits;

  // The rise of the process's resident memory during the run. Only when blocks were touched.
  std::optional<std::size_t> peak_resident_bytes;

  // After the last event: the committed bytes by the allocator's statistics, and the resident bytes of its
  // address range by the kernel's count. Only when blocks were touched, and for an allocator with one
  // contiguous range (Allocator::range). A large difference indicates a bug.
  std::optional<std::size_t> end_committed_bytes;
  std::optional<std::size_t> end_resident_bytes;

  // Writes the members under their names, unknown ones as null, into an open object.
  BERTH_EXPORT void write_json(JsonWriter& json) const;
};

// Throws OutOfMemory when the allocator or the device has not enough, after freeing what was allocated;
// ArgumentError for an unknown strategy, threads below 1, malloc on a device other than cpu;
// AccessError(wrong_device) for touching memory that the host cannot access; DeviceError when the device is
// unavailable.
BERTH_EXPORT ReplayResult replay(const ReplayScript& script, const ReplayOptions& options = {});

}  // namespace berth
