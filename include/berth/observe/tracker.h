// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/dtype.h"
#include "berth/base/json.h"
#include "berth/base/shape.h"
#include "berth/device/device.h"
#include "berth/export.h"
#include "berth/record/site.h"
#include "berth/record/stack.h"
#include "berth/record/tag.h"
#include "berth/storage/buffer.h"

// Finds leaks: what was allocated since a point in time and is still live, and who holds it:
//
//     Tracker t;
//     run_one_step();
//     EXPECT_TRUE(t.leaks().empty()) << t.leaks();
//
// It sees every block of every allocator of the process, and every storage: created, viewed, shared, mapped
// from a file, imported. With BERTH_LEAKS=1 the whole process is tracked from the start, and what is live when
// it exits is printed to standard error.
//
// While a tracker exists, each allocation and free costs some hundred nanoseconds more, since it is recorded
// with its time and site; without one there is no cost. Any thread.
namespace berth {

struct TrackerOptions {
  std::size_t stack_depth = 0;  // return addresses kept per allocation, at most CallSite::kMostFrames
};

enum class LeakKind : std::uint8_t {
  block,     // memory that was allocated without a storage or a buffer, and not freed
  buffer,    // bytes of a Buffer, with no storage over them
  storage,   // a storage over all of a buffer
  view,      // a storage over part of one, or in another layout
  exported,  // held only by another library, through DLPack, or by a pending copy
};
BERTH_EXPORT std::string_view to_string(LeakKind kind) noexcept;

// One object that keeps memory alive. Several views of one buffer are several leaks; `bytes` is counted in the
// first of them only.
struct Leak {
  LeakKind kind = LeakKind::block;
  Owner owner = Owner::none;  // who frees the bytes: an allocator, another process, a file, the exporter
  const void* address = nullptr;
  std::size_t bytes = 0;  // of the whole block or buffer; 0: counted with another leak
  Device device = {};
  Tag tag = {};
  SiteId site = {};
  StackId stack = {};
  std::uint64_t age_ns = 0;    // since the storage was created, or the block allocated
  std::string allocator = {};  // its name; empty for memory from outside

  // Of storages and views.
  std::optional<DType> dtype = {};
  std::optional<Shape> shape = {};
  std::optional<Strides> strides = {};
  long handles = 0;         // that refer to it
  std::string holder = {};  // in words: "2 handles", "a DLPack consumer", "other processes"

  // "storage f32 [2, 3], 24 B on cpu:0, tag kv, at decoder.cc:118 (grow), 1.5 s old, held by 2 handles"
  BERTH_EXPORT std::string to_string() const;
  BERTH_EXPORT void write_json(JsonWriter& json) const;
};

using Leaks = std::vector<Leak>;
BERTH_EXPORT std::ostream& operator<<(std::ostream& out, const Leaks& leaks);  // a line for each

class BERTH_EXPORT Tracker {
 public:
  // Throws ArgumentError(limit_exceeded) for a depth above the maximum.
  explicit Tracker(const TrackerOptions& options = {});
  ~Tracker();
  Tracker(const Tracker&) = delete;
  Tracker& operator=(const Tracker&) = delete;

  // What was created since the tracker, or since the last restart, and is live; oldest first. Memory that berth
  // itself keeps (thread caches, staging buffers) is not included: only what a program can release.
  Leaks leaks() const;

  // Starts over: what is live at this moment is not a leak.
  void restart();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace berth
