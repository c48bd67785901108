// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cuda/kernels/lanes.h"
#include "device/cuda/kernels/quads.h"

// Four elements at a time as in quads.h, also for the most common integer dtypes: bool, u8, i32 and i64. Values
// that fit into f32 go through it; the others go through lanes.h, with dtypes that are compile-time constants
// here, so that the branches are optimized away.
namespace berth::internal::device::cuda {

// The dtypes that row kernels convert between.
constexpr bool has_quads(DType dtype) noexcept {
  return is_quick(dtype) || dtype == DType::boolean || dtype == DType::u8 || dtype == DType::i32 || dtype == DType::i64;
}

namespace quads {

// Maps non-zero bytes to 1.
BERTH_BOTH std::uint32_t ones(std::uint32_t word) noexcept { return (((word & 0x7f7f7f7fU) + 0x7f7f7f7fU) | word) >> 7 & 0x01010101U; }

template <int Byte>
BERTH_BOTH float widen_u8(std::uint32_t word) noexcept {
  return bits_as<float>(permute(word, 0x4b000000U, 0x7440U | Byte)) - 8388608.0F;  // 2^23
}
BERTH_BOTH Floats widen_bytes(std::uint32_t word) noexcept {
  return {{widen_u8<0>(word), widen_u8<1>(word), widen_u8<2>(word), widen_u8<3>(word)}};
}

template <DType D>
BERTH_BOTH Bits element(const Quad<D>& quad, int i) noexcept {
  if constexpr (size_bytes(D) == 1)
    return {quad.words[0] >> 8 * i & 0xffU, 0};
  else if constexpr (size_bytes(D) == 2)
    return {quad.words[i / 2] >> 16 * (i % 2) & 0xffffU, 0};
  else if constexpr (size_bytes(D) == 4)
    return {quad.words[i], 0};
  else
    return {std::uint64_t{quad.words[2 * i + 1]} << 32 | quad.words[2 * i], 0};
}

// REQUIRES: the element's bits in the quad are 0.
template <DType D>
BERTH_BOTH void put(Quad<D>& quad, int i, std::uint64_t bits) noexcept {
  const auto low = static_cast<std::uint32_t>(bits);
  if constexpr (size_bytes(D) == 1) {
    quad.words[0] |= (low & 0xffU) << 8 * i;
  } else if constexpr (size_bytes(D) == 2) {
    quad.words[i / 2] |= (low & 0xffffU) << 16 * (i % 2);
  } else if constexpr (size_bytes(D) == 4) {
    quad.words[i] = low;
  } else {
    quad.words[2 * i] = low;
    quad.words[2 * i + 1] = static_cast<std::uint32_t>(bits >> 32);
  }
}

template <DType D>
BERTH_BOTH Quad<D> integers_of(const Floats& floats) noexcept {
  const float(&v)[4] = floats.at;
  Quad<D> made{};
  if constexpr (D == DType::boolean) {
    for (int i = 0; i < 4; ++i) made.words[0] |= (v[i] != 0 ? 1U : 0U) << 8 * i;
  } else if constexpr (D == DType::u8) {
    made.words[0] =
        hardware::u8x4(hardware::i32_of_f32(v[0]), hardware::i32_of_f32(v[1]), hardware::i32_of_f32(v[2]), hardware::i32_of_f32(v[3]));
  } else {
    for (int i = 0; i < 4; ++i) put<D>(made, i, narrow(D, LaneKind::f64, {bits_as<std::uint64_t>(widen(v[i])), 0}).low);
  }
  return made;
}

}  // namespace quads

// Any pair of dtypes with has_quads.
template <DType From, DType To>
BERTH_BOTH Quad<To> convert_quad(const Quad<From>& quad) noexcept {
  static_assert(From == To || (has_quads(From) && has_quads(To)));
  if constexpr (From == To || (is_quick(From) && is_quick(To))) {
    return convert<From, To>(quad);
  } else if constexpr (is_quick(To) && (From == DType::boolean || From == DType::u8)) {
    const Floats floats = quads::widen_bytes(From == DType::boolean ? quads::ones(quad.words[0]) : quad.words[0]);
    if constexpr (To == DType::i8 && From == DType::u8)
      return {{quad.words[0]}};
    else
      return from_floats<To>(floats);
  } else if constexpr (is_quick(From) && From != DType::f64 && From != DType::i8) {
    return quads::integers_of<To>(to_floats<From>(quad));
  } else {
    Quad<To> made{};
    for (int i = 0; i < 4; ++i) quads::put<To>(made, i, convert(From, To, quads::element<From>(quad, i)).low);
    return made;
  }
}

}  // namespace berth::internal::device::cuda
