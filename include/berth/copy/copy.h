// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "berth/base/shape.h"
#include "berth/copy/scalar.h"
#include "berth/device/stream.h"
#include "berth/export.h"
#include "berth/record/site.h"

// Copies between any two devices, layouts and dtypes. This level works on plain spans: `Storage` calls it, and
// so can code that has raw pointers. Any thread.
//
// Order: without a stream the copy is done when the call returns. With a stream it runs in stream order; the
// call returns when the copy is done or, with `non_blocking`, at once, and the returned event completes with
// the copy. The `keep_alive` of both spans is held until the copy has run. Nothing is written when an argument
// is refused.
//
// Target and source may overlap: the result is that of a copy through a temporary.
namespace berth {

// Elements in memory: address, dtype and layout. Plain data, and a reference that keeps the memory alive.
struct StridedSpan {
  void* data = nullptr;  // of the element at index 0, 0, …; may be null when there are no elements
  DType dtype = DType::u8;
  Shape shape = {};
  Strides strides = {};  // in elements; one for each dimension
  Device device = {};
  std::shared_ptr<const void> keep_alive = {};
  bool read_only = false;  // refused as a target
};

struct CopyOptions {
  StreamRef stream = {};
  bool non_blocking = false;  // only with a stream
};

// Throws ArgumentError: size_mismatch for unequal shapes, overlapping_view when two indices of the target reach
// the same element, others for an inconsistent span; AccessError(read_only); DeviceError when a device is
// missing, lost, or reports an error; OutOfMemory when staging or scratch buffers (copy/route.h) cannot be
// allocated. After a device error the target may hold some of the elements.
BERTH_EXPORT Event copy(const StridedSpan& source, const StridedSpan& target, const CopyOptions& options = {}, Site site = Site::here());

// Copies sources[i] to targets[i] for all i. Every pair is validated before the first byte moves; unequal
// counts are refused. The pairs must not overlap each other: their order is unspecified. Thousands of small
// copies cost little more than one copy of all their bytes: host copies are distributed over the threads
// together, the others run grouped by pair of devices.
BERTH_EXPORT Event copy_batch(std::span<const StridedSpan> sources, std::span<const StridedSpan> targets, const CopyOptions& options = {},
                              Site site = Site::here());

// Throws ArgumentError(size_mismatch) unless a batch has exactly one target for each source.
BERTH_EXPORT void require_equal_counts(std::size_t sources, std::size_t targets);

BERTH_EXPORT Event fill(const StridedSpan& target, Scalar value, const CopyOptions& options = {}, Site site = Site::here());

// Whether both have the same shape, dtype and bytes. The comparison is bitwise: NaN equals itself, 0 and -0
// differ.
BERTH_EXPORT bool equal(const StridedSpan& a, const StridedSpan& b);

// Raw memory, by the same rules. The caller keeps it alive.
BERTH_EXPORT Event copy_bytes(void* target, Device target_device, const void* source, Device source_device, std::size_t bytes,
                              const CopyOptions& options = {}, Site site = Site::here());
BERTH_EXPORT Event fill_bytes(void* target, Device target_device, unsigned char value, std::size_t bytes, const CopyOptions& options = {},
                              Site site = Site::here());

}  // namespace berth
