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

// Where the memory goes, and the time of copies:
//
//     Profiler profiler({.every = 10ms});
//     run_one_step();
//     Profile what = profiler.profile();
//     std::puts(what.to_text().c_str());          // or what.to_json()
//
// Counting by device and tag is made to be left on: a few additions in a table of the thread's own for each event, without a lock, a clock or
// a system call. Sites cost more: each block must be looked up when it is freed, some hundred nanoseconds. They are an option.
//
// One profiler at a time. BERTH_PROFILE=file counts from the start of the process, and writes the profile when it exits.
namespace berth {

struct ProfilerOptions {
  bool sites = false;                  // also by call site
  std::size_t stack_depth = 0;         // with sites: return addresses beside the site, at most CallSite::kMostFrames
  std::chrono::milliseconds every{0};  // take a sample this often, by a thread of the profiler's own; 0: only when sample() is called
  std::size_t most_samples = 4096;     // past it every other one is dropped, and the time between them doubled; at least 2
  std::size_t most_copies = 10'000;    // copies kept one by one, for the timeline; the totals count all
};

// What was allocated and freed. Counting begins with the profiler: freeing what is older than that makes `bytes` negative.
//
//     bytes == allocated_bytes - freed_bytes          blocks == allocations - frees          bytes <= peak_bytes
struct ProfileCounts {
  std::int64_t bytes = 0;       // in use
  std::int64_t peak_bytes = 0;  // the most there were. Exact for one thread; with several, each may be 1 MiB off
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

// Copies that took one way: the devices, the dtypes, and what ran.
struct CopyProfile {
  Device source;
  Device target;
  DType source_dtype = DType::u8;
  DType target_dtype = DType::u8;
  std::string route;  // "host", "kernel > transfer", "fill"
  std::uint64_t copies = 0;
  std::uint64_t bytes = 0;    // written
  std::uint64_t waited = 0;   // how many of them the caller waited for
  std::uint64_t time_ns = 0;  // of those: others run in their stream, and nobody knows when
};

// One copy, for the timeline.
struct CopyEvent {
  std::uint64_t begin_ns = 0;  // from the profiler's start
  std::uint64_t took_ns = 0;   // 0: not waited for
  std::uint64_t bytes = 0;
  std::uint64_t thread = 0;
  std::uint32_t way = 0;  // in Profile::copies
};

// What each device and tag held at one moment.
struct ProfileSample {
  std::uint64_t time_ns = 0;        // from the profiler's start
  std::string label;                // of mark(); else empty
  std::vector<std::int64_t> bytes;  // as Profile::tags; those that came later are missing at the end
};

struct BERTH_EXPORT Profile {
  std::uint64_t duration_ns = 0;
  std::vector<TagProfile> devices;  // tags together; `tag` means nothing
  std::vector<TagProfile> tags;     // by device and tag. This and `copies` in the order of first use
  std::vector<SiteProfile> sites;   // with ProfilerOptions::sites: most bytes at the peak first. Blocks that are older are not in it
  std::vector<CopyProfile> copies;
  std::vector<CopyEvent> copy_events;
  std::uint64_t copy_events_dropped = 0;
  std::vector<ProfileSample> samples;  // by time

  // Requests by size: sizes[0] counts those of 1 byte, sizes[i] those above 2^(i-1) and up to 2^i bytes.
  std::array<std::uint64_t, 64> sizes{};

  std::string to_text() const;
  std::string to_json() const;
  void write_json(JsonWriter& json) const;
};

class BERTH_EXPORT Profiler {
 public:
  // Throws AccessError(busy) when there is one already, ArgumentError for options that make no sense.
  explicit Profiler(const ProfilerOptions& options = {});
  ~Profiler();
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  // Everything so far. Other threads go on meanwhile: each of their events is in it or not.
  Profile profile() const;

  // A sample now; with a label, which the timeline shows.
  void sample() { mark({}); }
  void mark(std::string_view label);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace berth
