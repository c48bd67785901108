// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "berth/device/backend.h"
#include "device/cuda/cuda_context.h"

// Submits copies and fills to a CUDA stream. cuda_copy.cc alone chooses between the driver's copies and our
// kernels. Any thread.
// REQUIRES: the context is current; every address is memory that the device can access.
namespace berth::internal::device::cuda {

// Loads our kernels for the device; false when they do not run on it.
bool load_kernels_here() noexcept;

Status submit_copy(CudaContext& context, void* target, const void* source, std::size_t bytes, CUstream stream) noexcept;
// Within the device. Source and target may overlap: the result is as if through a temporary.
Status submit_copy_within(CudaContext& context, void* target, const void* source, std::size_t bytes, CUstream stream) noexcept;
// `kernels`: load_kernels_here returned true. REQUIRES: is_pattern(bytes, pattern).
Status submit_fill(CudaContext& context, void* target, std::size_t bytes, std::span<const std::byte> pattern, bool kernels,
                   CUstream stream) noexcept;
// REQUIRES: load_kernels_here.
Status submit_elements(CudaContext& context, const ElementCopy& copy, CUstream stream) noexcept;
Status submit_gather(CudaContext& context, std::span<const Transfer> transfers, CUstream stream) noexcept;

}  // namespace berth::internal::device::cuda
