// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "device/cuda/kernels/device_memory.cuh"
#include "device/cuda/kernels/tasks.h"

// Fills with a repeated pattern. The host rotates the pattern to begin at a multiple of 16 bytes; the unaligned
// head and tail are written by bytes.
namespace berth::internal::device::cuda {

namespace {

constexpr std::uint32_t kInFlight = 4;  // vectors per thread

struct FillTask {
  std::byte* target = nullptr;  // a multiple of 16 if there are vectors
  std::uint64_t vectors = 0;
  std::uint32_t before = 0;  // bytes, fewer than 16
  std::uint32_t behind = 0;
  Packed<16> pattern = {};  // rotated to begin at `target`
};

__device__ std::byte byte_of(const Packed<16>& pattern, std::uint32_t number) {
  const std::uint32_t word = number / 4 == 0   ? pattern.words[0]
                             : number / 4 == 1 ? pattern.words[1]
                             : number / 4 == 2 ? pattern.words[2]
                                               : pattern.words[3];
  return static_cast<std::byte>(word >> 8 * (number % 4) & 0xff);
}

__global__ void __launch_bounds__(kThreads) fill_vectors(const __grid_constant__ FillTask task) {
  const std::uint64_t first = std::uint64_t{blockIdx.x} * (kThreads * kInFlight) + threadIdx.x;
#pragma unroll
  for (std::uint32_t i = 0; i < kInFlight; ++i) {
    const std::uint64_t vector = first + i * kThreads;
    if (vector < task.vectors) store<16>(task.target + vector * 16, task.pattern);
  }
  if (blockIdx.x != 0) return;
  if (threadIdx.x < task.before)
    task.target[static_cast<std::int64_t>(threadIdx.x) - task.before] = byte_of(task.pattern, 16 - task.before + threadIdx.x);
  if (threadIdx.x < task.behind) task.target[task.vectors * 16 + threadIdx.x] = byte_of(task.pattern, threadIdx.x);
}

}  // namespace

Status load_fill() noexcept { return load_kernel<fill_vectors>(); }

Status launch_fill(void* target, std::size_t bytes, std::span<const std::byte> pattern, StreamHandle stream) noexcept {
  const std::size_t size = pattern.size();
  const bool is_size = size == 1 || size == 2 || size == 4 || size == 8 || size == 16;
  if (!is_size || bytes % size != 0)
    return Failure{ErrorCode::invalid_argument, 0, "a pattern has 1, 2, 4, 8 or 16 bytes and divides the target"};
  if (bytes == 0) return {};
  const std::size_t misplaced = reinterpret_cast<std::uintptr_t>(target) % 16;
  const std::size_t to_multiple = misplaced == 0 ? 0 : 16 - misplaced;
  FillTask task;
  // A short target that contains no multiple of 16: there are no vectors, and all its bytes are `behind` its
  // start.
  if (to_multiple >= bytes) {
    task.target = static_cast<std::byte*>(target);
    std::byte whole[16];
    for (std::size_t i = 0; i < 16; ++i) whole[i] = pattern[i % size];
    std::memcpy(&task.pattern, whole, 16);
    task.behind = static_cast<std::uint32_t>(bytes);
    return launch(fill_vectors, 1, task, kThreads, stream);
  }
  task.target = static_cast<std::byte*>(target) + to_multiple;
  task.before = static_cast<std::uint32_t>(to_multiple);
  task.vectors = (bytes - to_multiple) / 16;
  task.behind = static_cast<std::uint32_t>((bytes - to_multiple) % 16);
  std::byte turned[16];
  for (std::size_t i = 0; i < 16; ++i) turned[i] = pattern[(to_multiple + i) % size];
  std::memcpy(&task.pattern, turned, 16);
  const std::uint64_t blocks = (task.vectors + kThreads * kInFlight - 1) / (kThreads * kInFlight);
  return launch(fill_vectors, blocks == 0 ? 1 : blocks, task, kThreads, stream);
}

}  // namespace berth::internal::device::cuda
