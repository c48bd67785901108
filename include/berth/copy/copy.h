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

// Copies between any two places, layouts and dtypes. This level knows plain spans; `Storage` is one caller, raw pointers another.
//
// Order: without a stream a copy is done when the call returns. With a stream it runs in the stream's order; the call returns when
// it is done, or at once with `non_blocking`, and then the event tells when. What the spans name to be kept alive is kept until the
// copy has run. Nothing is written when an argument is refused.
//
// Target and source may overlap: the result is that of a copy through a temporary.
namespace berth {

// Elements in memory: where, of what type, laid out how. Plain data, and something to keep alive.
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

// Throws ArgumentError: size_mismatch for unequal shapes, overlapping_view when the target reaches an element twice, others for a span that
// contradicts itself; AccessError(read_only); DeviceError when a device is missing, lost, or refuses; OutOfMemory when there is none for
// what has to be kept in between (copy/route.h says what that is). Once a device has refused, the target may hold a part of the elements.
BERTH_EXPORT Event copy(const StridedSpan& source, const StridedSpan& target, const CopyOptions& options = {}, Site site = Site::here());

// Copies sources[i] to targets[i] for all i. Every pair is checked before the first byte moves; unequal counts are refused. The pairs
// must not overlap each other: their order is not defined. Thousands of small copies cost little more than one of all their bytes: what
// the host does is shared out over its threads together, the rest runs from one pair of devices to the next.
BERTH_EXPORT Event copy_batch(std::span<const StridedSpan> sources, std::span<const StridedSpan> targets, const CopyOptions& options = {},
                              Site site = Site::here());

// Throws ArgumentError(size_mismatch) when a batch has not one target for each source.
BERTH_EXPORT void require_equal_counts(std::size_t sources, std::size_t targets);

BERTH_EXPORT Event fill(const StridedSpan& target, Scalar value, const CopyOptions& options = {}, Site site = Site::here());

// Whether both have the same shape, dtype and bytes. Bits are compared: NaN equals itself, 0 and -0 differ.
BERTH_EXPORT bool equal(const StridedSpan& a, const StridedSpan& b);

// Raw memory, by the same rules. The caller keeps it alive.
BERTH_EXPORT Event copy_bytes(void* target, Device target_device, const void* source, Device source_device, std::size_t bytes,
                              const CopyOptions& options = {}, Site site = Site::here());
BERTH_EXPORT Event fill_bytes(void* target, Device target_device, unsigned char value, std::size_t bytes, const CopyOptions& options = {},
                              Site site = Site::here());

}  // namespace berth
