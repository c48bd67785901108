// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/kernels.h"

#include <cuda_runtime.h>

namespace berth::testing {

namespace {

constexpr std::size_t kEnd = 64;  // words at each end

__global__ void spin(const volatile std::uint32_t* until) {
  const long long begin = clock64();
  while (*until == 0 && clock64() - begin < 20'000'000'000LL) __nanosleep(200);
}

__device__ std::uint32_t word(std::uint32_t value, std::size_t place) { return value * 2654435761U + static_cast<std::uint32_t>(place); }

__global__ void write(std::uint32_t* target, std::size_t words, std::uint32_t value) {
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < words; i += std::size_t{gridDim.x} * blockDim.x)
    target[i] = word(value, i);
}

__global__ void check(const std::uint32_t* source, std::size_t words, std::uint32_t value, std::uint32_t* wrong) {
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < words; i += std::size_t{gridDim.x} * blockDim.x) {
    if (source[i] != word(value, i)) atomicAdd(wrong, 1U);
  }
}

__global__ void write_ends(std::uint32_t* target, std::size_t words, std::size_t end, std::uint32_t value) {
  const std::size_t i = threadIdx.x < end ? threadIdx.x : words - 2 * end + threadIdx.x;
  target[i] = word(value, i);
}

__global__ void check_ends(const std::uint32_t* source, std::size_t words, std::size_t end, std::uint32_t value, std::uint32_t* wrong) {
  const std::size_t i = threadIdx.x < end ? threadIdx.x : words - 2 * end + threadIdx.x;
  if (source[i] != word(value, i)) atomicAdd(wrong, 1U);
}

__global__ void illegal() { *reinterpret_cast<volatile int*>(8) = 1; }

bool launched() { return cudaGetLastError() == cudaSuccess; }

unsigned blocks_for(std::size_t words) { return static_cast<unsigned>(words / 256 + 1 < 1024 ? words / 256 + 1 : 1024); }

std::size_t end_of(std::size_t words) { return words / 2 < kEnd ? words / 2 : kEnd; }

template <class Kernel>
bool load(Kernel kernel) {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, kernel) == cudaSuccess;
}

}  // namespace

bool load_kernels() { return load(spin) && load(write) && load(check) && load(write_ends) && load(check_ends) && load(illegal); }

bool launch_spin(const volatile std::uint32_t* until, CUstream_st* stream) {
  spin<<<1, 1, 0, stream>>>(until);
  return launched();
}

bool launch_write(void* target, std::size_t bytes, std::uint32_t value, CUstream_st* stream) {
  write<<<blocks_for(bytes / 4), 256, 0, stream>>>(static_cast<std::uint32_t*>(target), bytes / 4, value);
  return launched();
}

bool launch_check(const void* source, std::size_t bytes, std::uint32_t value, std::uint32_t* wrong, CUstream_st* stream) {
  check<<<blocks_for(bytes / 4), 256, 0, stream>>>(static_cast<const std::uint32_t*>(source), bytes / 4, value, wrong);
  return launched();
}

bool launch_write_ends(void* target, std::size_t bytes, std::uint32_t value, CUstream_st* stream) {
  const std::size_t end = end_of(bytes / 4);
  if (end == 0) return true;
  write_ends<<<1, static_cast<unsigned>(2 * end), 0, stream>>>(static_cast<std::uint32_t*>(target), bytes / 4, end, value);
  return launched();
}

bool launch_check_ends(const void* source, std::size_t bytes, std::uint32_t value, std::uint32_t* wrong, CUstream_st* stream) {
  const std::size_t end = end_of(bytes / 4);
  if (end == 0) return true;
  check_ends<<<1, static_cast<unsigned>(2 * end), 0, stream>>>(static_cast<const std::uint32_t*>(source), bytes / 4, end, value, wrong);
  return launched();
}

bool launch_illegal(CUstream_st* stream) {
  illegal<<<1, 1, 0, stream>>>();
  return launched();
}

}  // namespace berth::testing
