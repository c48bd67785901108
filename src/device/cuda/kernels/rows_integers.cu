// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/kernels/rows.cuh"

// Row kernels from integers and bool.
namespace berth::internal::device::cuda {

BERTH_CUDA_ROW_DTYPES(BERTH_CUDA_ROWS, i8)
BERTH_CUDA_ROW_DTYPES(BERTH_CUDA_ROWS, u8)
BERTH_CUDA_ROW_DTYPES(BERTH_CUDA_ROWS, i32)
BERTH_CUDA_ROW_DTYPES(BERTH_CUDA_ROWS, i64)
BERTH_CUDA_ROW_DTYPES(BERTH_CUDA_ROWS, boolean)

}  // namespace berth::internal::device::cuda
