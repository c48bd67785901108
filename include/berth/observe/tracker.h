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

// What was allocated since a point and still lives, and who holds it:
//
//     Tracker t;
//     run_one_step();
//     EXPECT_TRUE(t.leaks().empty()) << t.leaks();
//
// It sees every block of every allocator of the process, and every storage: made, viewed, shared, mapped from a file, imported. With
// BERTH_LEAKS=1 the whole process is tracked from the start, and what is left when it exits is printed on standard error.
//
// While a tracker lives, requests and frees cost some hundred nanoseconds more each, since they are written down with their time and site;
// without one they cost nothing more. Any thread.
namespace berth {

struct TrackerOptions {
  std::size_t stack_depth = 0;  // return addresses kept of each allocation beside its site, at most CallSite::kMostFrames
};

enum class LeakKind : std::uint8_t {
  block,     // memory that was allocated without a storage or a buffer around it, and not freed
  buffer,    // bytes of a Buffer, with no storage over them
  storage,   // a storage over all of a buffer
  view,      // a storage over part of one, or in another layout
  exported,  // no storage of this process any more: another library has it, by DLPack or as a copy under way
};
BERTH_EXPORT std::string_view to_string(LeakKind kind) noexcept;

// One thing that keeps memory. Several views that keep one buffer are several; `bytes` is counted in the first of them only.
struct Leak {
  LeakKind kind = LeakKind::block;
  Owner owner = Owner::none;  // who gives the bytes back: an allocator, another process, a file, whoever exported them
  const void* address = nullptr;
  std::size_t bytes = 0;  // of the whole block or buffer; 0: counted with another leak
  Device device = {};
  Tag tag = {};
  SiteId site = {};
  StackId stack = {};
  std::uint64_t age_ns = 0;    // since the storage was made, or the block allocated
  std::string allocator = {};  // its name; empty for memory from outside

  // Of storages and views.
  std::optional<DType> dtype = {};
  std::optional<Shape> shape = {};
  std::optional<Strides> strides = {};
  long handles = 0;         // that name it
  std::string holder = {};  // who keeps it, in words: "2 handles", "a DLPack consumer", "other processes"

  // "storage f32 [2, 3], 24 B on cpu:0, tag kv, at decoder.cc:118 (grow), 1.5 s old, held by 2 handles"
  BERTH_EXPORT std::string to_string() const;
  BERTH_EXPORT void write_json(JsonWriter& json) const;
};

using Leaks = std::vector<Leak>;
BERTH_EXPORT std::ostream& operator<<(std::ostream& out, const Leaks& leaks);  // a line for each

class BERTH_EXPORT Tracker {
 public:
  // Throws ArgumentError(limit_exceeded) for a depth beyond the most.
  explicit Tracker(const TrackerOptions& options = {});
  ~Tracker();
  Tracker(const Tracker&) = delete;
  Tracker& operator=(const Tracker&) = delete;

  // What was made since the tracker was, or since the last restart, and lives; oldest first. What berth itself keeps (threads' caches, staging)
  // is not among it: only what a program can let go of.
  Leaks leaks() const;

  // From now on: what lives at this moment is not a leak.
  void restart();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace berth
