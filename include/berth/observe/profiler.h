// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/dtype.h"
#include "berth/base/json.h"
#include "berth/device/device.h"
#include "berth/export.h"
#include "berth/record/site.h"
#include "berth/record/stack.h"
#include "berth/record/tag.h"

// Profiles memory use and the time of copies:
//
//     Profiler profiler({.every = 10ms});
//     run_one_step();
//     Profile what = profiler.profile();
//     std::puts(what.to_string().c_str());          // or to_json(what)
//
// Counting by device and tag is cheap enough to be left on: a few additions in a thread-local table for each
// event, without a lock, a clock or a system call. Call sites are optional and cost more: each block must be
// looked up when it is freed, which takes some hundred nanoseconds.
//
// One profiler at a time; its methods may be called from any thread. BERTH_PROFILE=file profiles from the start
// of the process, and writes the profile when it exits.
namespace berth {

struct ProfilerOptions {
  bool sites = false;                  // also by call site
  std::size_t stack_depth = 0;         // with sites: return addresses per site, at most CallSite::kMostFrames
  std::chrono::milliseconds every{0};  // sampling interval, in a background thread; 0: only by sample()
  std::size_t most_samples = 4096;     // at the limit half of them are dropped, and `every` doubles; at least 2
  std::size_t most_copies = 10'000;    // copies kept individually, for the timeline; the totals count all
};

// What was allocated and freed. Counting begins with the profiler: freeing what is older than that makes
// `bytes` negative.
//
//     bytes == allocated_bytes - freed_bytes          blocks == allocations - frees          bytes <= peak_bytes
struct ProfileCounts {
  std::int64_t bytes = 0;       // in use
  std::int64_t peak_bytes = 0;  // exact for one thread; with several, each may be 1 MiB off
  std::int64_t blocks = 0;
  std::uint64_t allocations = 0;
  std::uint64_t frees = 0;
  std::uint64_t allocated_bytes = 0;
  std::uint64_t freed_bytes = 0;
  friend bool operator==(const ProfileCounts&, const ProfileCounts&) = default;
};

struct TagProfile {
  Device device;
  Tag tag;
  ProfileCounts counts;
};

struct SiteProfile {
  Device device;
  Tag tag;
  SiteId site;
  StackId stack;
  ProfileCounts counts;
};

// Copies with the same devices, dtypes and route.
struct CopyProfile {
  Device source;
  Device target;
  DType source_dtype = DType::u8;
  DType target_dtype = DType::u8;
  std::string route;  // "host", "kernel > transfer", "fill"
  std::uint64_t copies = 0;
  std::uint64_t bytes = 0;    // written
  std::uint64_t waited = 0;   // copies that the caller waited for
  std::uint64_t time_ns = 0;  // of those only: the others finish asynchronously in their stream
};

// One copy, for the timeline.
struct CopyEvent {
  std::uint64_t begin_ns = 0;  // from the profiler's start
  std::uint64_t took_ns = 0;   // 0: not waited for
  std::uint64_t bytes = 0;
  std::uint64_t thread = 0;
  std::uint32_t way = 0;  // index in Profile::copies
};

// What each device and tag held at one moment.
struct ProfileSample {
  std::uint64_t time_ns = 0;        // from the profiler's start
  std::string label;                // of mark(); else empty
  std::vector<std::int64_t> bytes;  // parallel to Profile::tags; tags first used later are missing at the end
};

struct BERTH_EXPORT Profile {
  std::uint64_t duration_ns = 0;
  std::vector<TagProfile> devices;  // totals over all tags; `tag` is unused
  std::vector<TagProfile> tags;     // by device and tag. This and `copies` in the order of first use
  // With ProfilerOptions::sites: highest peak first. Without blocks allocated before the profiler.
  std::vector<SiteProfile> sites;
  std::vector<CopyProfile> copies;
  std::vector<CopyEvent> copy_events;
  std::uint64_t copy_events_dropped = 0;
  std::vector<ProfileSample> samples;  // by time

  // Requests by size: sizes[0] counts those of 1 byte, sizes[i] those above 2^(i-1) and up to 2^i bytes.
  std::array<std::uint64_t, 64> sizes{};

  std::string to_string() const;
  void write_json(JsonWriter& json) const;
};

class BERTH_EXPORT Profiler {
 public:
  // Throws AccessError(busy) when there is a profiler already, ArgumentError for invalid options, DeviceError when
  // the system refuses the thread that takes samples.
  explicit Profiler(const ProfilerOptions& options = {});
  ~Profiler();
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  // The profile so far. Other threads may run concurrently: each of their events is included as a whole or not
  // at all.
  Profile profile() const;

  // Takes a sample now; mark adds a label, which the timeline shows.
  void sample() { mark({}); }
  void mark(std::string_view label);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace berth
