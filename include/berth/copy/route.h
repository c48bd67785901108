// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "berth/base/json.h"
#include "berth/copy/copy.h"
#include "berth/device/backend.h"
#include "berth/export.h"

// The route of a copy, as data. Before a byte moves, berth decides which steps take the elements from one span
// to the other, what runs each step, and where dtypes and layouts change; then it runs the steps. The decision
// is a pure function of two `RouteEnd`s and the `RouteSettings`, so it can be printed, compared and tested
// without the hardware, from any thread:
//
//     Route way = plan_route(weights.span(), on_device.span());
//     way.to_string();   // host cpu:0: source f32 -> staging bf16, whole
//                        // transfer cuda:0: staging bf16 -> target bf16, whole
//                        // 16 pieces of 1048576 elements, staging on pinned:0
//
// Rules:
// - Both ends in host-accessible memory: one host step, which gathers, scatters and converts in one pass.
// - Within one device: the device's memory copy for one contiguous run of bytes; else its kernel. Without
//   kernels, runs and single elements are copied one after another, and dtypes are converted in staging, on the
//   host.
// - Between the host and a device: a transfer. A device with kernels gathers, scatters and converts its own
//   side, in its own scratch memory; without kernels its side is walked in runs, and the host does the rest. A
//   contiguous host side is transferred directly; any other goes through staging, and so do a mapped file, and
//   pageable memory when the device is fast only with page-locked memory.
// - Between two devices: the same, with a peer transfer where one device reaches the other, else through
//   staging.
// - Dtypes are converted on the side that makes fewer bytes cross: before the transfer when the target's
//   elements are smaller, after it when they are larger. If that side cannot convert, the other does; if
//   neither can, the host converts in staging.
// - Overlapping sides: one run of equal dtype on the host is a memmove; everything else is read into a
//   temporary, as one piece, before any of it is written.
namespace berth {

// What runs a step, and how.
enum class StepKind : unsigned char {
  host,      // the host's threads
  transfer,  // a device's memory copy, within its memory or between it and the host's
  peer,      // a device's memory copy to or from another device
  kernel,    // a device's own code, within its memory
};
BERTH_EXPORT std::string_view to_string(StepKind kind) noexcept;

// Where a step reads and writes.
enum class StepMemory : unsigned char {
  source,
  target,
  staging,         // dense pieces of host memory
  source_scratch,  // dense pieces on the source's device
  target_scratch,  // dense pieces on the target's device
};
BERTH_EXPORT std::string_view to_string(StepMemory memory) noexcept;

// How the elements of the two sides of a step are walked.
enum class Walk : unsigned char {
  whole,    // as one run of bytes on both sides
  rows,     // as runs
  tiles,    // in blocks of two axes, because the sides are dense along different axes
  strided,  // along rows that are not runs on one side
};
BERTH_EXPORT std::string_view to_string(Walk walk) noexcept;

struct RouteStep {
  StepKind kind = StepKind::host;
  Device runs_on = {};
  StepMemory from = StepMemory::source;
  StepMemory to = StepMemory::target;
  DType from_dtype = DType::u8;
  DType to_dtype = DType::u8;
  Walk walk = Walk::whole;

  friend bool operator==(const RouteStep&, const RouteStep&) = default;
};

struct BERTH_EXPORT Route {
  std::vector<RouteStep> steps;  // in order, for each piece; empty when there is nothing to do
  std::size_t num_elements = 0;
  // The steps run for one piece after another. There is a single piece unless bytes go through staging or
  // scratch.
  std::size_t piece_elements = 0;
  std::size_t pieces = 0;
  Device staging = {};   // the device of staging: `cpu` or `pinned`; `cpu` when no step uses it
  bool overlap = false;  // the sides overlap: everything is read before anything is written

  bool uses(StepMemory memory) const noexcept;

  // One line for each step, and one about the pieces when there are several steps, separated by '\n'; no
  // trailing newline.
  std::string to_string() const;
  void write_json(JsonWriter& json) const;

  friend bool operator==(const Route&, const Route&) = default;
};

// One end of a copy: the facts that the route depends on.
struct RouteEnd {
  Device device = {};
  DType dtype = DType::u8;
  Shape shape = {};
  Strides strides = {};
  Abilities abilities = {};  // of the device
  bool mapped = false;       // a mapped file's, which only berth touches: its bytes can vanish (berth/file/map.h)
};

struct RouteSettings {
  std::size_t piece_bytes = std::size_t{4} << 20;  // of staging or scratch, at the larger of the two dtypes
  bool source_reaches = false;                     // Backend::reaches of the source's device, for the target's
  bool target_reaches = false;                     // the other way round
  bool overlap = false;                            // the sides may overlap; ignored when they are in two
                                                   // memories
};

// Throws ArgumentError: size_mismatch for unequal shapes, or unless there is one stride for each dimension;
// size_overflow and out_of_bounds for what cannot be addressed; invalid_argument for piece_bytes of 0. Has no
// side effects.
BERTH_EXPORT Route plan_route(const RouteEnd& source, const RouteEnd& target, const RouteSettings& settings = {});

// The route that `copy` takes between two spans on this machine. Throws as `copy` does for arguments that it
// refuses.
BERTH_EXPORT Route plan_route(const StridedSpan& source, const StridedSpan& target);

}  // namespace berth
