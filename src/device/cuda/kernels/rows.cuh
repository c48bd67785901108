// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cuda/kernels/device_memory.cuh"
#include "device/cuda/kernels/integer_quads.h"
#include "device/cuda/kernels/pairs.h"

// Converts rows that are contiguous on both sides, in vectors of 16 bytes on the side with the larger elements;
// each thread issues several loads before it uses the first. Each pair of dtypes has its own kernel; they are
// many, and in two files, by their source.
namespace berth::internal::device::cuda {

namespace {

template <DType From, DType To>
struct RowShape {
  static constexpr int kFrom = static_cast<int>(size_bytes(From));
  static constexpr int kTo = static_cast<int>(size_bytes(To));
  static constexpr RowWork kWork = row_work(kFrom, kTo);
  static constexpr int kVector = kWork.vector;
  static constexpr int kInFlight = kWork.in_flight;
  static constexpr int kFromBytes = kVector * kFrom;
  static constexpr int kToBytes = kVector * kTo;
  static constexpr std::uint32_t kTileVectors = kThreads * kInFlight;
};

template <DType From, DType To, class Shape = RowShape<From, To>>
__device__ __forceinline__ Packed<Shape::kToBytes> convert_vector(const Packed<Shape::kFromBytes>& in) {
  Packed<Shape::kToBytes> out;
  constexpr int kIn = sizeof(in.words) / 4;
  constexpr int kOut = sizeof(out.words) / 4;
#pragma unroll
  for (int q = 0; q < (Shape::kVector + 3) / 4; ++q) {  // the unused half of a quad is optimized away
    Quad<From> quad{};
#pragma unroll
    for (int i = 0; i < Shape::kFrom; ++i) {
      if (q * Shape::kFrom + i < kIn) quad.words[i] = in.words[q * Shape::kFrom + i];
    }
    const Quad<To> made = convert_quad<From, To>(quad);
#pragma unroll
    for (int i = 0; i < Shape::kTo; ++i) {
      if (q * Shape::kTo + i < kOut) out.words[q * Shape::kTo + i] = made.words[i];
    }
  }
  return out;
}

// A vector of elements of `Size` bytes, at any address.
template <int Bytes, int Size>
__device__ __forceinline__ Packed<Bytes> load_misaligned(const std::byte* address, const RowsTask& task) {
  Packed<Bytes> made{};
  if constexpr (Bytes >= 16) {
#pragma unroll
    for (int i = 0; i < Bytes / 16; ++i) {
      const std::byte* const at = address + 16 * i;
      const Packed<16> part = has_room(at, task.source_begin, task.source_end) ? load_anywhere(at) : load_some<1>(at, 16);
#pragma unroll
      for (int word = 0; word < 4; ++word) made.words[4 * i + word] = part.words[word];
    }
  } else if (Size < 8 && is_multiple(address, Size)) {
#pragma unroll
    for (int i = 0; i < Bytes; i += Size) made.words[i / 4] |= load_element<(Size < 8 ? Size : 4)>(address + i).words[0] << 8 * (i % 4);
  } else {
#pragma unroll
    for (int i = 0; i < Bytes; ++i) made.words[i / 4] |= load_element<1>(address + i).words[0] << 8 * (i % 4);
  }
  return made;
}

template <DType From, DType To>
__device__ void convert_one(const std::byte* source, std::byte* target) {
  constexpr int kFrom = RowShape<From, To>::kFrom;
  constexpr int kTo = RowShape<From, To>::kTo;
  Quad<From> quad{};
#pragma unroll
  for (int i = 0; i < kFrom; ++i) quad.words[i / 4] |= load_element<1>(source + i).words[0] << 8 * (i % 4);
  const Quad<To> made = convert_quad<From, To>(quad);
#pragma unroll
  for (int i = 0; i < kTo; ++i) store_element<1>(target + i, {{made.words[i / 4] >> 8 * (i % 4)}});
}

template <DType From, DType To>
__device__ __forceinline__ void convert_rows(const RowsTask& task) {
  using Shape = RowShape<From, To>;
  const std::uint32_t row = task.tiles.quotient(blockIdx.x);
  const std::uint32_t tile = blockIdx.x - row * task.tiles.divisor;
  const Offsets offsets = task.outer.at(row);
  const std::byte* const source = task.source + offsets.source;
  std::byte* const target = task.target + offsets.target;

  // Elements before the first aligned vector of the target.
  constexpr std::uintptr_t kUnit = Shape::kToBytes < 16 ? Shape::kToBytes : 16;
  const auto past = static_cast<std::uint32_t>((0 - reinterpret_cast<std::uintptr_t>(target)) & (kUnit - 1)) / Shape::kTo;
  const std::uint32_t head = past < task.elements ? past : task.elements;
  const std::uint32_t vectors = (task.elements - head) / Shape::kVector;
  const std::byte* const from = source + head * Shape::kFrom;
  std::byte* const to = target + head * Shape::kTo;
  const std::uint32_t first = tile * Shape::kTileVectors + threadIdx.x;

  if (is_multiple(from, Shape::kFromBytes < 16 ? Shape::kFromBytes : 16)) {
    Packed<Shape::kFromBytes> in[Shape::kInFlight];
#pragma unroll
    for (int i = 0; i < Shape::kInFlight; ++i) {
      const std::uint32_t vector = first + i * kThreads;
      if (vector < vectors) in[i] = load<Shape::kFromBytes>(from + std::size_t{vector} * Shape::kFromBytes);
    }
#pragma unroll
    for (int i = 0; i < Shape::kInFlight; ++i) {
      const std::uint32_t vector = first + i * kThreads;
      if (vector < vectors) store<Shape::kToBytes>(to + std::size_t{vector} * Shape::kToBytes, convert_vector<From, To>(in[i]));
    }
  } else {
#pragma unroll 2
    for (int i = 0; i < Shape::kInFlight; ++i) {
      const std::uint32_t vector = first + i * kThreads;
      if (vector >= vectors) break;
      const auto in = load_misaligned<Shape::kFromBytes, Shape::kFrom>(from + std::size_t{vector} * Shape::kFromBytes, task);
      store<Shape::kToBytes>(to + std::size_t{vector} * Shape::kToBytes, convert_vector<From, To>(in));
    }
  }

  // Less than a vector at each end: at most 30 elements.
  const std::uint32_t behind = head + vectors * Shape::kVector;
  if (tile == 0 && threadIdx.x < head + (task.elements - behind)) {
    const std::uint32_t at = threadIdx.x < head ? threadIdx.x : threadIdx.x - head + behind;
    convert_one<From, To>(source + std::size_t{at} * Shape::kFrom, target + std::size_t{at} * Shape::kTo);
  }
}

}  // namespace

// The kernel of a pair; empty where a pair has none.
#define BERTH_CUDA_ROWS(from, to)                                                                                    \
  extern "C" __global__ void __launch_bounds__(kThreads) rows_##from##_##to(const __grid_constant__ RowsTask task) { \
    if constexpr (has_rows(DType::from, DType::to)) convert_rows<DType::from, DType::to>(task);                      \
  }

}  // namespace berth::internal::device::cuda
