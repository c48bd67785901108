// SPDX-License-Identifier: Apache-2.0
#pragma once

#if defined(__aarch64__)

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

// NEON vector types and helpers, for arm_casts.cc. Stateless.

// Enables instructions that not every processor has, in these functions only. Compilers differ only in the
// spelling.
#if defined(__clang__)
#define BERTH_ARM __attribute__((target("bf16,fullfp16")))
#else
#define BERTH_ARM __attribute__((target("+bf16+fp16")))
#endif
#define BERTH_ARM_INLINE BERTH_ARM __attribute__((always_inline)) inline
// Applies one step to all vectors.
#define BERTH_EACH(count) _Pragma("GCC unroll 16") for (std::size_t i = 0; i < (count); ++i)

namespace berth::internal::copy::arm {

using Bytes = const std::uint8_t*;
using V8 = uint8x16_t;
using V16 = uint16x8_t;
using V32 = uint32x4_t;
using F32 = float32x4_t;

constexpr std::size_t kBlock = 16;  // elements

// ---- Instructions for which not all compilers have an intrinsic.

BERTH_ARM_INLINE V16 narrow_to_bf16(F32 low, F32 high) noexcept {
  V16 out;
  asm("bfcvtn %0.4h, %1.4s\n\tbfcvtn2 %0.8h, %2.4s" : "=&w"(out) : "w"(low), "w"(high));
  return out;
}
BERTH_ARM_INLINE V16 multiply_f16(V16 a, V16 b) noexcept {
  asm("fmul %0.8h, %0.8h, %1.8h" : "+w"(a) : "w"(b));
  return a;
}
BERTH_ARM_INLINE V16 subtract_f16(V16 a, V16 b) noexcept {
  asm("fsub %0.8h, %0.8h, %1.8h" : "+w"(a) : "w"(b));
  return a;
}
BERTH_ARM_INLINE V16 multiply_add_f16(V16 sum, V16 a, V16 b) noexcept {
  asm("fmla %0.8h, %1.8h, %2.8h" : "+w"(sum) : "w"(a), "w"(b));
  return sum;
}
BERTH_ARM_INLINE V16 is_number_f16(V16 a) noexcept {
  V16 out;
  asm("fcmeq %0.8h, %1.8h, %1.8h" : "=w"(out) : "w"(a));
  return out;
}
BERTH_ARM_INLINE int16x8_t truncate_f16(V16 a) noexcept {
  int16x8_t out;
  asm("fcvtzs %0.8h, %1.8h" : "=w"(out) : "w"(a));
  return out;
}

// ---- Packing and widening of adjacent vectors: the halves of lanes, and lanes as the high halves of wider
// lanes.

BERTH_ARM_INLINE V16 low_halves(V32 a, V32 b) noexcept { return vuzp1q_u16(vreinterpretq_u16_u32(a), vreinterpretq_u16_u32(b)); }
BERTH_ARM_INLINE V16 high_halves(V32 a, V32 b) noexcept { return vuzp2q_u16(vreinterpretq_u16_u32(a), vreinterpretq_u16_u32(b)); }
BERTH_ARM_INLINE V8 low_halves(V16 a, V16 b) noexcept { return vuzp1q_u8(vreinterpretq_u8_u16(a), vreinterpretq_u8_u16(b)); }
BERTH_ARM_INLINE V8 high_halves(V16 a, V16 b) noexcept { return vuzp2q_u8(vreinterpretq_u8_u16(a), vreinterpretq_u8_u16(b)); }
// The lower or the upper half of the lanes.
BERTH_ARM_INLINE F32 raise(V16 v, bool upper) noexcept {
  const V16 zero = vdupq_n_u16(0);
  return vreinterpretq_f32_u16(upper ? vzip2q_u16(zero, v) : vzip1q_u16(zero, v));
}
BERTH_ARM_INLINE F32 widen_f16(V16 v, bool upper) noexcept {
  const float16x8_t half = vreinterpretq_f16_u16(v);
  return upper ? vcvt_high_f32_f16(half) : vcvt_f32_f16(vget_low_f16(half));
}
BERTH_ARM_INLINE V16 zip(V8 low, V8 high, bool upper) noexcept {
  return vreinterpretq_u16_u8(upper ? vzip2q_u8(low, high) : vzip1q_u8(low, high));
}
BERTH_ARM_INLINE V8 with_signs(V8 code, V8 top_bytes) noexcept { return vbslq_u8(vdupq_n_u8(0x80), top_bytes, code); }

template <std::size_t Count>
BERTH_ARM_INLINE void load(Bytes from, V8 (&v)[Count]) noexcept {
  BERTH_EACH(Count) v[i] = vld1q_u8(from + i * 16);
}
template <std::size_t Count>
BERTH_ARM_INLINE void load(Bytes from, V16 (&v)[Count]) noexcept {
  BERTH_EACH(Count) v[i] = vreinterpretq_u16_u8(vld1q_u8(from + i * 16));
}
// Stores cache lines in address order. Compilers would reorder the stores, and that made f8e4m3 → f32 almost
// three times slower.
template <std::size_t Count>
BERTH_ARM_INLINE void store(const V8 (&v)[Count], std::uint8_t* to) noexcept {
  BERTH_EACH(Count) {
    vst1q_u8(to + i * 16, v[i]);
    if (i % 4 == 3) asm volatile("" ::: "memory");
  }
}
template <std::size_t Count>
BERTH_ARM_INLINE void store(const V16 (&v)[Count], std::uint8_t* to) noexcept {
  V8 bytes[Count];
  BERTH_EACH(Count) bytes[i] = vreinterpretq_u8_u16(v[i]);
  store(bytes, to);
}
template <std::size_t Count>
BERTH_ARM_INLINE void store(const F32 (&v)[Count], std::uint8_t* to) noexcept {
  V8 bytes[Count];
  BERTH_EACH(Count) bytes[i] = vreinterpretq_u8_f32(v[i]);
  store(bytes, to);
}

}  // namespace berth::internal::copy::arm

#endif
