// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/kernels/device_memory.cuh"

// Batches of byte copies in one launch, for thousands of small ones that would cost more to submit than to run.
// The list is passed as the kernel's parameter, of up to nearly 32 KiB, so nothing has to be allocated, staged
// or kept alive. Pieces are split into parts of 16 KiB, one per block, so that a large piece among small ones
// is spread over blocks too.
namespace berth::internal::device::cuda {

namespace {

constexpr std::uint32_t kInFlight = kPartBytes / (kThreads * 16);  // vectors per thread

// The piece that a part belongs to, by binary search: the first whose end is past it.
__device__ std::uint32_t piece_of(const GatherTask& task, std::uint32_t part) {
  std::uint32_t begin = 0;
  std::uint32_t end = task.pieces - 1;
  while (begin < end) {
    const std::uint32_t half = (begin + end) / 2;
    if (task.last_parts[half] > part)
      end = half;
    else
      begin = half + 1;
  }
  return begin;
}

// Copies aligned vectors of the target, with aligned or misaligned loads, and then the tail by bytes.
template <class Load>
__device__ __forceinline__ void copy_part(const std::byte* source, std::byte* target, std::uint32_t bytes, Load load_vector) {
  const std::uint32_t count = bytes / 16;
  Packed<16> values[kInFlight];
#pragma unroll
  for (std::uint32_t i = 0; i < kInFlight; ++i) {
    const std::uint32_t vector = threadIdx.x + i * kThreads;
    if (vector < count) values[i] = load_vector(source + vector * 16);
  }
#pragma unroll
  for (std::uint32_t i = 0; i < kInFlight; ++i) {
    const std::uint32_t vector = threadIdx.x + i * kThreads;
    if (vector < count) store<16>(target + vector * 16, values[i]);
  }
  const std::uint32_t at = count * 16 + threadIdx.x;
  if (at < bytes) target[at] = source[at];
}

extern "C" __global__ void __launch_bounds__(kThreads) gather_parts(const __grid_constant__ GatherTask task) {
  const std::uint32_t number = piece_of(task, blockIdx.x);
  const std::uint32_t part = blockIdx.x - (number == 0 ? 0 : task.last_parts[number - 1]);
  const BytePiece& piece = task.list[number];
  const auto* source = static_cast<const std::byte*>(piece.source);
  auto* target = static_cast<std::byte*>(piece.target);

  // The first part ends where the target is aligned to 16, and all others begin there.
  const auto misplaced = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(target) & 15);
  const std::size_t begin = part == 0 ? 0 : std::size_t{part} * kPartBytes - misplaced;
  const std::size_t end = min(std::size_t{part + 1} * kPartBytes - misplaced, piece.bytes);
  if (begin >= end) return;
  source += begin;
  target += begin;
  auto bytes = static_cast<std::uint32_t>(end - begin);
  if (part == 0 && misplaced != 0) {
    const std::uint32_t head = min(16 - misplaced, bytes);
    if (threadIdx.x < head) target[threadIdx.x] = source[threadIdx.x];
    source += head;
    target += head;
    bytes -= head;
  }
  if (is_multiple(source, 16)) return copy_part(source, target, bytes, [](const std::byte* at) { return load<16>(at); });
  const auto* const all = static_cast<const std::byte*>(piece.source);
  copy_part(source, target, bytes, [all, end_of_all = all + piece.bytes](const std::byte* at) {
    return has_room(at, all, end_of_all) ? load_anywhere(at) : load_some<1>(at, 16);
  });
}

}  // namespace

}  // namespace berth::internal::device::cuda
