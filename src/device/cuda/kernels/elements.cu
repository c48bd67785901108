// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/kernels/device_memory.cuh"
#include "device/cuda/kernels/lanes.h"

// The fallback kernels: any layout, element by element, in the order of the target; and any conversion, with
// dtypes that are known only at run time.
namespace berth::internal::device::cuda {

namespace {

template <int Size>
__device__ __forceinline__ void move_elements(const ElementsTask& task) {
  const std::uint32_t first = blockIdx.x * (kThreads * kElementsInFlight) + threadIdx.x;
  Packed<(Size < 4 ? 4 : Size)> values[kElementsInFlight];
  std::int64_t targets[kElementsInFlight];
#pragma unroll
  for (std::uint32_t i = 0; i < kElementsInFlight; ++i) {
    const std::uint32_t index = first + i * kThreads;
    if (index >= task.elements) continue;
    const Offsets offsets = task.axes.at(index);
    values[i] = load_element<Size>(task.source + offsets.source);
    targets[i] = offsets.target;
  }
#pragma unroll
  for (std::uint32_t i = 0; i < kElementsInFlight; ++i) {
    if (first + i * kThreads < task.elements) store_element<Size>(task.target + targets[i], values[i]);
  }
}

// Up to 16 bytes. The size is uniform over the launch, so no warp diverges.
__device__ Bits load_bits(const std::byte* address, std::size_t size, bool aligned) {
  if (!aligned) {
    Bits made;
    for (std::size_t i = 0; i < size; ++i) {
      const std::uint64_t byte = load_element<1>(address + i).words[0];
      (i < 8 ? made.low : made.high) |= byte << 8 * (i % 8);
    }
    return made;
  }
  switch (size) {
    case 1: return {load_element<1>(address).words[0], 0};
    case 2: return {load_element<2>(address).words[0], 0};
    case 4: return {load_element<4>(address).words[0], 0};
    case 8: return {__ldg(reinterpret_cast<const unsigned long long*>(address)), 0};
    default: {
      const ulonglong2 read = __ldg(reinterpret_cast<const ulonglong2*>(address));
      return {read.x, read.y};
    }
  }
}

__device__ void store_bits(std::byte* address, std::size_t size, bool aligned, const Bits& bits) {
  if (!aligned) {
    for (std::size_t i = 0; i < size; ++i) address[i] = static_cast<std::byte>((i < 8 ? bits.low : bits.high) >> 8 * (i % 8));
    return;
  }
  switch (size) {
    case 1: *reinterpret_cast<unsigned char*>(address) = static_cast<unsigned char>(bits.low); break;
    case 2: *reinterpret_cast<unsigned short*>(address) = static_cast<unsigned short>(bits.low); break;
    case 4: *reinterpret_cast<unsigned*>(address) = static_cast<unsigned>(bits.low); break;
    case 8: *reinterpret_cast<unsigned long long*>(address) = bits.low; break;
    default: *reinterpret_cast<ulonglong2*>(address) = make_ulonglong2(bits.low, bits.high); break;
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads) convert_elements(const __grid_constant__ ElementsTask task) {
  const std::size_t from_bytes = size_bytes(task.from);
  const std::size_t to_bytes = size_bytes(task.to);
#pragma unroll 1
  for (std::uint32_t i = 0; i < kElementsInFlight; ++i) {
    const std::uint32_t index = blockIdx.x * (kThreads * kElementsInFlight) + i * kThreads + threadIdx.x;
    if (index >= task.elements) break;
    const Offsets offsets = task.axes.at(index);
    const Bits element = load_bits(task.source + offsets.source, from_bytes, task.aligned);
    store_bits(task.target + offsets.target, to_bytes, task.aligned, convert(task.from, task.to, element));
  }
}

#define BERTH_CUDA_MOVES(size)                                                                                     \
  extern "C" __global__ void __launch_bounds__(kThreads) moves_##size(const __grid_constant__ ElementsTask task) { \
    move_elements<size>(task);                                                                                     \
  }
BERTH_CUDA_MOVES(1)
BERTH_CUDA_MOVES(2)
BERTH_CUDA_MOVES(4)
BERTH_CUDA_MOVES(8)
BERTH_CUDA_MOVES(16)

}  // namespace berth::internal::device::cuda
