// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "berth/device/backend.h"
#include "device/cuda/cuda_context.h"

// What moves and fills bytes on a CUDA device, in a stream. The one file that knows which of the driver's copies or of our kernels does it.
// REQUIRES: the context is current; every address is memory that the device can reach.
namespace berth::internal::device::cuda {

// Whether our kernels run on the device, which it is made ready for.
bool load_kernels_here() noexcept;

Status submit_copy(CudaContext& context, void* target, const void* source, std::size_t bytes, CUstream stream) noexcept;
// On the device itself, where the two may overlap: as if through a temporary.
Status submit_copy_within(CudaContext& context, void* target, const void* source, std::size_t bytes, CUstream stream) noexcept;
// REQUIRES: is_pattern(bytes, pattern). With `kernels` they are there.
Status submit_fill(CudaContext& context, void* target, std::size_t bytes, std::span<const std::byte> pattern, bool kernels,
                   CUstream stream) noexcept;
// REQUIRES: load_kernels_here.
Status submit_elements(CudaContext& context, const ElementCopy& copy, CUstream stream) noexcept;
Status submit_gather(CudaContext& context, std::span<const Transfer> transfers, CUstream stream) noexcept;

}  // namespace berth::internal::device::cuda
