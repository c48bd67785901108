// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "berth/base/result.h"
#include "berth/device/element_copy.h"

struct CUstream_st;  // what CUDA's headers call a stream

// What the kernels of berth do on a CUDA device: copies of elements in any layout and between any dtypes, fills, and many small copies of
// bytes at once. Plain C++, so that the backend needs no CUDA compiler to call them.
//
// Every function puts its work into the stream and returns; the memory must stay until the stream has run it. Nothing is allocated and
// nothing is waited for, so all of it may be captured into a graph. REQUIRES: the stream's context is current on the calling thread.
// (Launches go through the runtime's library; it works in whatever context is current.)
//
// Addresses may be misaligned, also for their dtype: such copies work and are slower. They are those of the device's memory or of page-locked
// host memory that the device can reach under the same address.
//
// Failures: unsupported when this build has no code for the device; device_error with CUDA's own words.
namespace berth::internal::device::cuda {

using StreamHandle = CUstream_st*;

// Puts all kernels onto the current device. CUDA would do so with each kernel's first launch, and then wait for everything that runs there,
// which may be waiting for us. Fails where this build has no code for the device, or CUDA's runtime does not work.
Status load_kernels() noexcept;

// Whether launch_copy_elements can do it: equal ranks, and sizes that fit into 63 bits.
bool can_copy_elements(const ElementCopy& copy) noexcept;

// By the rules of copy/convert.h, to the bit. The sides do not overlap.
Status launch_copy_elements(const ElementCopy& copy, StreamHandle stream) noexcept;

// Repeats a pattern of 1, 2, 4, 8 or 16 bytes. Fails with invalid_argument for another, or when `bytes` is not a multiple of it.
Status launch_fill(void* target, std::size_t bytes, std::span<const std::byte> pattern, StreamHandle stream) noexcept;

// One of many copies of bytes.
struct BytePiece {
  void* target = nullptr;
  const void* source = nullptr;
  std::size_t bytes = 0;
};

// Copies all pieces, in no order. The list may go when the call returns: it travels with the launches, a thousand pieces and more in each.
Status launch_gather(std::span<const BytePiece> pieces, StreamHandle stream) noexcept;

}  // namespace berth::internal::device::cuda
