// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/kernels/rows.cuh"

// Row kernels from floating-point numbers.
namespace berth::internal::device::cuda {

BERTH_CUDA_ROW_DTYPES(BERTH_CUDA_ROWS, f32)
BERTH_CUDA_ROW_DTYPES(BERTH_CUDA_ROWS, f64)
BERTH_CUDA_ROW_DTYPES(BERTH_CUDA_ROWS, f16)
BERTH_CUDA_ROW_DTYPES(BERTH_CUDA_ROWS, bf16)
BERTH_CUDA_ROW_DTYPES(BERTH_CUDA_ROWS, f8e4m3)
BERTH_CUDA_ROW_DTYPES(BERTH_CUDA_ROWS, f8e5m2)

}  // namespace berth::internal::device::cuda
