// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "berth/export.h"
#include "berth/plan/plan.h"
#include "berth/storage/create.h"
#include "berth/storage/storage.h"

// A plan bound to real memory: one buffer for each device, and in it a storage for every value.
//
//     Placement mem = place(p, {{"cuda:0", gpu}});
//     Storage a = mem[value];                        // a view into the arena
//
// Storages keep the arena's memory alive. A placement, like any object, is not for two threads at once unless none of them changes it.
namespace berth {

class Placement;

// Allocates the arenas, each from the allocator that is given for its device, or from the device's default one; where a device has chunks, each
// of them by itself, from the allocator that is given for the chunk's name, if any. Throws OutOfMemory, DeviceError,
// ArgumentError(invalid_argument): the plan has no places, or an allocator is on another device than the name says.
BERTH_EXPORT Placement place(Plan plan, const std::map<std::string, std::shared_ptr<Allocator>>& allocators = {});

class BERTH_EXPORT Placement {
 public:
  const Plan& plan() const noexcept { return plan_; }
  const Buffer& arena(std::uint32_t device) const;  // by the index in Graph::devices; empty when it holds no bytes, or has chunks
  const Buffer& chunk(std::size_t index) const;     // by the index in PlanTables::chunks; empty when it holds no bytes

  // The memory that a value lies in, an arena or a chunk, and where in it. As operator[], but for bytes.
  struct Spot {
    const Buffer& buffer;
    std::size_t offset;
  };
  Spot spot(ValueId value) const;

  // The storage of a value, with its dtype and shape; bytes (u8) where the graph does not say. Throws ArgumentError(invalid_argument) for a
  // value without a place, with the reason.
  Storage operator[](ValueId value) const;

  // The same bytes in another shape, as when the batch is smaller than the one planned for. Throws ArgumentError(limit_exceeded) when it
  // needs more bytes than the value was planned with: then nothing may run, and a new plan is needed.
  Storage at(ValueId value, DType dtype, const Shape& shape) const;

  // Moves everything to the memory of another allocator on the same device, contents included, chunk by chunk. Throws AccessError(busy) while
  // a storage of that arena is out, and nothing has changed.
  void move(std::uint32_t device, const std::shared_ptr<Allocator>& allocator);

 private:
  friend Placement place(Plan plan, const std::map<std::string, std::shared_ptr<Allocator>>& allocators);
  explicit Placement(Plan plan) : plan_(std::move(plan)) {}

  Plan plan_;
  std::vector<Buffer> arenas_;  // one for each device of the graph
  std::vector<Buffer> chunks_;  // one for each chunk of the plan
};

// Runs the graph's reads and writes on a placement, with bytes that say whose they are: every node finds in its inputs what their producers
// wrote, and writes its outputs; in the end the graph's outputs are still there. `order`, when given, is the order of nodes: all of
// the plan, each after those whose values it reads, else ArgumentError(invalid_argument); nothing is wrong if it also keeps to the plan's edges. Every byte is written and read, on whatever device it is.
struct ShadowReport {
  std::size_t nodes = 0;
  std::size_t bytes_written = 0;
  std::size_t bytes_read = 0;
  std::vector<std::string> wrong;  // "node 'add' reads 'x' and finds …", at most ten
  bool ok() const noexcept { return wrong.empty(); }
};
BERTH_EXPORT ShadowReport shadow_run(const Placement& placement, const std::vector<NodeId>& order = {});

}  // namespace berth
