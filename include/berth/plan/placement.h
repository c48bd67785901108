// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "berth/export.h"
#include "berth/plan/plan.h"
#include "berth/storage/create.h"
#include "berth/storage/storage.h"

// A plan bound to memory: one buffer for each device, and a storage in it for every value.
//
//     Placement mem = place(p, {{"cuda:0", gpu}});
//     Storage a = mem[value];                        // a view into the arena
//
// Storages keep the arena's memory alive. Not synchronized: concurrent const calls are safe, `move` needs
// exclusive access.
namespace berth {

class Placement;

// Allocates the arenas, each from the allocator given for its device, or from the device's default allocator.
// Where a device has chunks, each is a separate allocation, from the allocator given for the chunk's name, if
// any. Throws OutOfMemory, DeviceError, ArgumentError(invalid_argument): the plan has no locations, or an
// allocator is on another device than the name says.
BERTH_EXPORT Placement place(Plan plan, const std::map<std::string, std::shared_ptr<Allocator>>& allocators = {});

// Places the plans of ranges of one graph on the same memory, which is as large as the largest of them needs: what one
// range leaves there, the next one keeps (PlanOptions::after; verify_plans says whether they belong together). The arena
// of such a placement does not move. Throws as above, and for plans with chunks.
BERTH_EXPORT std::vector<Placement> place(std::vector<Plan> plans,
                                          const std::map<std::string, std::shared_ptr<Allocator>>& allocators = {});

// Places the plan of a later range on the memory of an earlier one. Throws ArgumentError(limit_exceeded) where that
// memory is too small, or not as aligned as it must be: then the plans are to be placed together.
BERTH_EXPORT Placement place(Plan plan, const Placement& earlier);

class BERTH_EXPORT Placement {
 public:
  const Plan& plan() const noexcept { return plan_; }
  const Buffer& arena(std::uint32_t device) const;  // by the index in Graph::devices; empty when it holds no
                                                    // bytes, or has chunks
  const Buffer& chunk(std::size_t index) const;     // by the index in PlanTables::chunks; empty when it holds
                                                    // no bytes

  // The buffer that contains a value, an arena or a chunk, and the offset in it. Throws as operator[] does.
  struct Spot {
    const Buffer& buffer;
    std::size_t offset;
  };
  Spot spot(ValueId value) const;

  // The storage of a value, with its dtype and shape; bytes (u8) where the graph gives none. Throws
  // ArgumentError(invalid_argument) for a value without a location, with the reason.
  Storage operator[](ValueId value) const;

  // The same bytes in another shape, as for a batch smaller than the planned one. Throws
  // ArgumentError(limit_exceeded) when that needs more bytes than were planned for the value: then nothing may
  // run, and a new plan is needed. Throws ArgumentError(misaligned) when the offset is no multiple of the
  // dtype's size.
  Storage at(ValueId value, DType dtype, const Shape& shape) const;

  // Moves a device's arena, contents included, to memory of another allocator on the same device, chunk by
  // chunk. Throws AccessError(busy) while a storage of that arena is alive, and nothing has changed.
  void move(std::uint32_t device, const std::shared_ptr<Allocator>& allocator);

 private:
  friend Placement place(Plan plan, const std::map<std::string, std::shared_ptr<Allocator>>& allocators);
  friend std::vector<Placement> place(std::vector<Plan> plans, const std::map<std::string, std::shared_ptr<Allocator>>& allocators);
  friend Placement place(Plan plan, const Placement& earlier);
  explicit Placement(Plan plan) : plan_(std::move(plan)) {}

  Plan plan_;
  std::vector<Buffer> arenas_;  // one for each device of the graph
  std::vector<Buffer> chunks_;  // one for each chunk of the plan
};

// Simulates the graph's reads and writes on a placement. Each value is filled with a pattern of its own: every
// node must find in its inputs what their producers wrote, and at the end the graph's outputs must be intact.
// Every byte is written and read, on whatever device it is. `order`, when given, is the execution order: all
// nodes of the plan in a topological order, else ArgumentError(invalid_argument). An order that also respects
// the plan's edges finds nothing wrong.
struct ShadowReport {
  std::size_t nodes = 0;
  std::size_t bytes_written = 0;
  std::size_t bytes_read = 0;
  std::vector<std::string> wrong;  // "node 'add' reads 'x' and finds …", at most ten
  bool ok() const noexcept { return wrong.empty(); }
};
BERTH_EXPORT ShadowReport shadow_run(const Placement& placement, const std::vector<NodeId>& order = {});

// Simulates ranges of one graph one after another, in the order of their nodes: a later range must also find what the
// earlier ones wrote. What the first keeps is filled before it runs. Throws ArgumentError(invalid_argument) for
// placements of different graphs.
BERTH_EXPORT ShadowReport shadow_run(std::span<const Placement> placements);

}  // namespace berth
