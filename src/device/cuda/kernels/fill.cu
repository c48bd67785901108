// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/kernels/device_memory.cuh"

// Fills with a repeated pattern. The host rotates the pattern to begin at a multiple of 16 bytes; the unaligned
// head and tail are written by bytes.
namespace berth::internal::device::cuda {

namespace {

__device__ std::byte byte_of(const Packed<16>& pattern, std::uint32_t number) {
  const std::uint32_t word = number / 4 == 0   ? pattern.words[0]
                             : number / 4 == 1 ? pattern.words[1]
                             : number / 4 == 2 ? pattern.words[2]
                                               : pattern.words[3];
  return static_cast<std::byte>(word >> 8 * (number % 4) & 0xff);
}

extern "C" __global__ void __launch_bounds__(kThreads) fill_vectors(const __grid_constant__ FillTask task) {
  const std::uint64_t first = std::uint64_t{blockIdx.x} * (kThreads * kFillInFlight) + threadIdx.x;
#pragma unroll
  for (std::uint32_t i = 0; i < kFillInFlight; ++i) {
    const std::uint64_t vector = first + i * kThreads;
    if (vector < task.vectors) store<16>(task.target + vector * 16, task.pattern);
  }
  if (blockIdx.x != 0) return;
  if (threadIdx.x < task.before)
    task.target[static_cast<std::int64_t>(threadIdx.x) - task.before] = byte_of(task.pattern, 16 - task.before + threadIdx.x);
  if (threadIdx.x < task.behind) task.target[task.vectors * 16 + threadIdx.x] = byte_of(task.pattern, threadIdx.x);
}

}  // namespace

}  // namespace berth::internal::device::cuda
