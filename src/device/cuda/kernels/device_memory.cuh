// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/cuda/kernels/tasks.h"

// Loads and stores in kernels, at any alignment.
namespace berth::internal::device::cuda {

__device__ __forceinline__ bool is_multiple(const void* address, std::uintptr_t of) {
  return (reinterpret_cast<std::uintptr_t>(address) & (of - 1)) == 0;
}

// REQUIRES: the address is aligned to min(Bytes, 16).
template <int Bytes>
__device__ __forceinline__ Packed<Bytes> load(const std::byte* address) {
  Packed<Bytes> made;
  if constexpr (Bytes == 2) {
    made.words[0] = __ldg(reinterpret_cast<const unsigned short*>(address));
  } else if constexpr (Bytes == 4) {
    made.words[0] = __ldg(reinterpret_cast<const unsigned*>(address));
  } else if constexpr (Bytes == 8) {
    const uint2 read = __ldg(reinterpret_cast<const uint2*>(address));
    made.words[0] = read.x;
    made.words[1] = read.y;
  } else {
#pragma unroll
    for (int i = 0; i < Bytes / 16; ++i) {
      const uint4 read = __ldg(reinterpret_cast<const uint4*>(address) + i);
      made.words[4 * i] = read.x;
      made.words[4 * i + 1] = read.y;
      made.words[4 * i + 2] = read.z;
      made.words[4 * i + 3] = read.w;
    }
  }
  return made;
}

template <int Bytes>
__device__ __forceinline__ void store(std::byte* address, const Packed<Bytes>& value) {
  if constexpr (Bytes == 4) {
    *reinterpret_cast<unsigned*>(address) = value.words[0];
  } else if constexpr (Bytes == 8) {
    *reinterpret_cast<uint2*>(address) = make_uint2(value.words[0], value.words[1]);
  } else {
#pragma unroll
    for (int i = 0; i < Bytes / 16; ++i)
      reinterpret_cast<uint4*>(address)[i] =
          make_uint4(value.words[4 * i], value.words[4 * i + 1], value.words[4 * i + 2], value.words[4 * i + 3]);
  }
}

// One element of 1, 2, 4, 8 or 16 bytes, zero-extended to words. REQUIRES: it is aligned to its size.
template <int Size>
__device__ __forceinline__ Packed<(Size < 4 ? 4 : Size)> load_element(const std::byte* address) {
  if constexpr (Size == 1)
    return {{__ldg(reinterpret_cast<const unsigned char*>(address))}};
  else if constexpr (Size == 2)
    return {{__ldg(reinterpret_cast<const unsigned short*>(address))}};
  else
    return load<Size>(address);
}
template <int Size>
__device__ __forceinline__ void store_element(std::byte* address, const Packed<(Size < 4 ? 4 : Size)>& value) {
  if constexpr (Size == 1)
    *reinterpret_cast<unsigned char*>(address) = static_cast<unsigned char>(value.words[0]);
  else if constexpr (Size == 2)
    *reinterpret_cast<unsigned short*>(address) = static_cast<unsigned short>(value.words[0]);
  else
    store<Size>(address, value);
}

// The first `count` elements of a 16-byte vector, each aligned to its size; the rest is 0.
template <int Size>
__device__ __forceinline__ Packed<16> load_some(const std::byte* address, std::uint32_t count) {
  Packed<16> made{};
#pragma unroll
  for (int i = 0; i < 16 / Size; ++i) {
    if (static_cast<std::uint32_t>(i) >= count) continue;
    const auto element = load_element<Size>(address + i * Size);
#pragma unroll
    for (int word = 0; word < (Size < 4 ? 1 : Size / 4); ++word)
      made.words[i * Size / 4 + word] |= element.words[word] << 8 * (i * Size % 4);
  }
  return made;
}

// 16 of the 32 bytes of two vectors, starting at byte `from`. REQUIRES: from < 16.
__device__ __forceinline__ Packed<16> middle(const Packed<16>& first, const Packed<16>& second, std::uint32_t from) {
  std::uint32_t words[8];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    words[i] = first.words[i];
    words[4 + i] = second.words[i];
  }
#pragma unroll
  for (int i = 0; i < 6; ++i) words[i] = (from & 8) != 0 ? words[i + 2] : words[i];
#pragma unroll
  for (int i = 0; i < 5; ++i) words[i] = (from & 4) != 0 ? words[i + 1] : words[i];
  Packed<16> made;
#pragma unroll
  for (int i = 0; i < 4; ++i) made.words[i] = __funnelshift_r(words[i], words[i + 1], 8 * (from & 3));
  return made;
}

// Whether the two aligned vectors that contain 16 bytes at any address are inside the readable range.
__device__ __forceinline__ bool has_room(const std::byte* address, const std::byte* begin, const std::byte* end) {
  const auto at = reinterpret_cast<std::uintptr_t>(address) & ~std::uintptr_t{15};
  return at >= reinterpret_cast<std::uintptr_t>(begin) && at + 32 <= reinterpret_cast<std::uintptr_t>(end);
}

// 16 bytes at any address. REQUIRES: has_room.
__device__ __forceinline__ Packed<16> load_anywhere(const std::byte* address) {
  const auto from = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(address) & 15);
  const std::byte* const at = address - from;
  return middle(load<16>(at), load<16>(at + 16), from);
}

}  // namespace berth::internal::device::cuda
