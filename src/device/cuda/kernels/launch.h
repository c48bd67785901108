// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "berth/base/result.h"
#include "berth/device/element_copy.h"

struct CUstream_st;  // what CUDA's headers call a stream

// The interface to berth's CUDA kernels: copies of elements in any layout and between any dtypes, fills, and
// batches of small byte copies. Plain C++, so that the backend needs no CUDA compiler to call them. Any thread.
//
// Every function is asynchronous: it enqueues its work into the stream, and the memory must stay allocated
// until the stream has run it. Nothing allocates or synchronizes, so all of it may be captured into a graph.
// REQUIRES: the driver is there (driver_state), and the stream's context is current on the calling thread.
//
// Addresses may be misaligned, even for their dtype: such copies are slower. They are addresses of device
// memory, or of page-locked host memory that the device can access at the same address.
//
// Failures: unsupported when this build has no code for the device; device_error with CUDA's message.
namespace berth::internal::device::cuda {

using StreamHandle = CUstream_st*;

// Loads all kernels onto the current device. CUDA would load each kernel lazily at its first launch, and then
// synchronize the device, whose work may be waiting for us. Fails where this build has no code for the device.
Status load_kernels() noexcept;

// Whether launch_copy_elements supports the copy: equal ranks, and sizes that fit into 63 bits.
bool can_copy_elements(const ElementCopy& copy) noexcept;

// Converts bit for bit as copy/convert.h does. Source and target do not overlap.
Status launch_copy_elements(const ElementCopy& copy, StreamHandle stream) noexcept;

// Repeats a pattern of 1, 2, 4, 8 or 16 bytes. Fails with invalid_argument for another size, or when `bytes` is
// not a multiple of it.
Status launch_fill(void* target, std::size_t bytes, std::span<const std::byte> pattern, StreamHandle stream) noexcept;

// One byte copy of a batch.
struct BytePiece {
  void* target = nullptr;
  const void* source = nullptr;
  std::size_t bytes = 0;
};

// Copies all pieces, in no order. The list need not outlive the call: it is passed as kernel parameters, more
// than a thousand pieces per launch.
Status launch_gather(std::span<const BytePiece> pieces, StreamHandle stream) noexcept;

}  // namespace berth::internal::device::cuda
