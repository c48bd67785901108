// SPDX-License-Identifier: Apache-2.0
#pragma once

#if defined(__aarch64__)

#include <cstring>

#include "copy/kernels/arm_vectors.h"
#include "copy/kernels/kernels.h"

// How blocks of elements are read as f32, four vectors to a block, or as f16, two vectors. kBlocks is how many
// blocks are processed together at most. For arm_casts.cc; stateless.
namespace berth::internal::copy::arm {

struct F32Source {
  static constexpr std::size_t kBytes = 4, kBlocks = 4;
  template <std::size_t N>
  BERTH_ARM_INLINE static void read(Bytes from, F32 (&x)[4 * N]) noexcept {
    BERTH_EACH(4 * N) x[i] = vreinterpretq_f32_u8(vld1q_u8(from + i * 16));
  }
};

// NaN stays as it is: the target's conversion makes it quiet.
struct Bf16Source {
  static constexpr std::size_t kBytes = 2, kBlocks = 4;
  template <std::size_t N>
  BERTH_ARM_INLINE static void read(Bytes from, F32 (&x)[4 * N]) noexcept {
    V16 v[2 * N];
    load(from, v);
    BERTH_EACH(4 * N) x[i] = raise(v[i / 2], i % 2 != 0);
  }
  // For f8e5m2, for which f16 is wide enough: from half of the smallest f8e5m2 value on, f16 holds every bf16
  // exactly.
  template <std::size_t N>
  BERTH_ARM_INLINE static void read(Bytes from, V16 (&x)[2 * N]) noexcept {
    F32 wide[4 * N];
    read<N>(from, wide);
    BERTH_EACH(2 * N) x[i] = vreinterpretq_u16_f16(vcvt_high_f16_f32(vcvt_f16_f32(wide[2 * i]), wide[2 * i + 1]));
  }
};

struct F16Source {
  static constexpr std::size_t kBytes = 2, kBlocks = 4;
  template <std::size_t N>
  BERTH_ARM_INLINE static void read(Bytes from, V16 (&x)[2 * N]) noexcept {
    load(from, x);
  }
  template <std::size_t N>
  BERTH_ARM_INLINE static void read(Bytes from, F32 (&x)[4 * N]) noexcept {
    V16 v[2 * N];
    load(from, v);
    BERTH_EACH(4 * N) x[i] = widen_f16(v[i / 2], i % 2 != 0);
  }
};

// For i8, u8 and bool. 2^23 + n, or in f16 2^10 + n, has n in its low bits. A signed byte is made unsigned by
// adding 128 first.
template <DType Byte>
struct ByteSource {
  static constexpr std::size_t kBytes = 1, kBlocks = 4;
  static constexpr bool kSigned = Byte == DType::i8;
  template <std::size_t N>
  BERTH_ARM_INLINE static void read_bytes(Bytes from, V8 (&v)[N]) noexcept {
    load(from, v);
    if constexpr (kSigned) BERTH_EACH(N) v[i] = veorq_u8(v[i], vdupq_n_u8(0x80));
    if constexpr (Byte == DType::boolean) BERTH_EACH(N) v[i] = vminq_u8(v[i], vdupq_n_u8(1));
  }
  template <std::size_t N>
  BERTH_ARM_INLINE static void read(Bytes from, F32 (&x)[4 * N]) noexcept {
    V8 v[N];
    V16 low[2 * N];
    read_bytes<N>(from, v);
    BERTH_EACH(2 * N) low[i] = zip(v[i / 2], vdupq_n_u8(0), i % 2 != 0);
    BERTH_EACH(4 * N)
    x[i] = vreinterpretq_f32_u16(i % 2 != 0 ? vzip2q_u16(low[i / 2], vdupq_n_u16(0x4b00)) : vzip1q_u16(low[i / 2], vdupq_n_u16(0x4b00)));
    BERTH_EACH(4 * N) x[i] = vsubq_f32(x[i], vdupq_n_f32(kSigned ? 0x1p23F + 128 : 0x1p23F));
  }
  template <std::size_t N>
  BERTH_ARM_INLINE static void read(Bytes from, V16 (&x)[2 * N]) noexcept {
    V8 v[N];
    read_bytes<N>(from, v);
    BERTH_EACH(2 * N) x[i] = zip(v[i / 2], vdupq_n_u8(0x64), i % 2 != 0);
    BERTH_EACH(2 * N) x[i] = subtract_f16(x[i], vdupq_n_u16(kSigned ? 0x6480 : 0x6400));
  }
};

// A code is the top byte of an f16. The multiplication makes NaN quiet, as widening does.
struct E5m2Source {
  static constexpr std::size_t kBytes = 1, kBlocks = 4;
  template <std::size_t N>
  BERTH_ARM_INLINE static void read(Bytes from, V16 (&x)[2 * N]) noexcept {
    constexpr std::uint16_t kOne = 0x3c00;
    V8 v[N];
    load(from, v);
    BERTH_EACH(2 * N) x[i] = zip(vdupq_n_u8(0), v[i / 2], i % 2 != 0);
    BERTH_EACH(2 * N) x[i] = multiply_f16(x[i], vdupq_n_u16(kOne));
  }
  template <std::size_t N>
  BERTH_ARM_INLINE static void read(Bytes from, F32 (&x)[4 * N]) noexcept {
    V8 v[N];
    V16 half[2 * N];
    load(from, v);
    BERTH_EACH(2 * N) half[i] = zip(vdupq_n_u8(0), v[i / 2], i % 2 != 0);
    BERTH_EACH(4 * N) x[i] = widen_f16(half[i / 2], i % 2 != 0);
  }
};

// A code of f8e4m3, shifted to the exponent field of a wider format, is a value of that format except for the
// bias, subnormals included; multiplying by a power of two corrects the bias exactly. NaN, whose code would be
// a number in other formats, is replaced first.
struct E4m3Source {
  static constexpr std::size_t kBytes = 1, kBlocks = 4;
  template <std::size_t N>
  BERTH_ARM_INLINE static void read(Bytes from, F32 (&x)[4 * N]) noexcept {
    V16 top[2 * N];
    place<N, 4, 0x7800, 0x7fc0>(from, top);
    BERTH_EACH(4 * N) x[i] = raise(top[i / 2], i % 2 != 0);
    BERTH_EACH(4 * N) x[i] = vmulq_f32(x[i], vdupq_n_f32(0x1p120F));
  }
  template <std::size_t N>
  BERTH_ARM_INLINE static void read(Bytes from, V16 (&x)[2 * N]) noexcept {
    constexpr std::uint16_t k256 = 0x5c00;
    place<N, 7, 0x4000, 0x7e00>(from, x);
    BERTH_EACH(2 * N) x[i] = multiply_f16(x[i], vdupq_n_u16(k256));
  }

  // The codes as the top 16 bits of the wider format.
  template <std::size_t N, int Shift, std::uint16_t Between, std::uint16_t Nan>
  BERTH_ARM_INLINE static void place(Bytes from, V16 (&top)[2 * N]) noexcept {
    constexpr std::uint16_t kAll = 0x7f << Shift;
    int8x16_t v[N];
    BERTH_EACH(N) v[i] = vreinterpretq_s8_u8(vld1q_u8(from + i * 16));
    BERTH_EACH(2 * N)
    top[i] = vreinterpretq_u16_s16(i % 2 != 0 ? vshll_high_n_s8(v[i / 2], Shift) : vshll_n_s8(vget_low_s8(v[i / 2]), Shift));
    BERTH_EACH(2 * N) top[i] = vbicq_u16(top[i], vdupq_n_u16(Between));  // copies of the sign
    if (!has_nan<N>(from)) [[likely]]
      return;
    BERTH_EACH(2 * N) {
      const V16 is_nan = vceqq_u16(vbicq_u16(top[i], vdupq_n_u16(0x8000)), vdupq_n_u16(kAll));
      top[i] = veorq_u16(top[i], vandq_u16(is_nan, vdupq_n_u16(kAll ^ Nan)));
    }
  }
  // NaN is rare: the test uses general-purpose registers, which are otherwise idle.
  template <std::size_t N>
  BERTH_ARM_INLINE static bool has_nan(Bytes codes) noexcept {
    std::uint64_t seen = 0;
    BERTH_EACH(2 * N) {
      std::uint64_t word;
      std::memcpy(&word, codes + i * 8, 8);
      asm("" : "+r"(word));  // keeps the compiler from vectorising this
      seen |= (word & 0x7f7f7f7f7f7f7f7fU) + 0x0101010101010101U;
      asm("" : "+r"(seen));
    }
    return (seen & 0x8080808080808080U) != 0;
  }
};

// Wider elements become f32 rounded to odd, so that the final format is rounded once; or rounded to nearest,
// where f32 is the final format.
template <Rounding How>
BERTH_ARM_INLINE F32 narrow(float64x2_t low, float64x2_t high) noexcept {
  if constexpr (How == Rounding::odd)
    return vcvtx_high_f32_f64(vcvtx_f32_f64(low), high);
  else
    return vcvt_high_f32_f64(vcvt_f32_f64(low), high);
}

struct F64Source {
  static constexpr std::size_t kBytes = 8, kBlocks = 2;
  template <std::size_t N>
  BERTH_ARM_INLINE static void read(Bytes from, F32 (&x)[4 * N]) noexcept {
    float64x2_t v[8 * N];
    BERTH_EACH(8 * N) v[i] = vreinterpretq_f64_u8(vld1q_u8(from + i * 16));
    BERTH_EACH(4 * N) x[i] = narrow<Rounding::odd>(v[2 * i], v[2 * i + 1]);
  }
};

// Through f64, which holds integers up to 2^53 exactly. Larger ones, which are rare, are rounded to odd first.
template <Rounding How>
struct I64Source {
  static constexpr std::size_t kBytes = 8, kBlocks = 2;
  template <std::size_t N>
  BERTH_ARM_INLINE static void read(Bytes from, F32 (&x)[4 * N]) noexcept {
    int64x2_t v[8 * N];
    float64x2_t wide[8 * N];
    BERTH_EACH(8 * N) v[i] = vreinterpretq_s64_u8(vld1q_u8(from + i * 16));
    if (has_large(v)) [[unlikely]] {
      BERTH_EACH(8 * N) v[i] = odd(v[i]);
    }
    BERTH_EACH(8 * N) wide[i] = vcvtq_f64_s64(v[i]);
    BERTH_EACH(4 * N) x[i] = narrow<How>(wide[2 * i], wide[2 * i + 1]);
  }
  // Whether the high half of any element is not within 2^21 of 0.
  template <std::size_t Count>
  BERTH_ARM_INLINE static bool has_large(const int64x2_t (&v)[Count]) noexcept {
    V32 most = vdupq_n_u32(0);
    BERTH_EACH(Count / 2) {
      const V32 high = vuzp2q_u32(vreinterpretq_u32_s64(v[2 * i]), vreinterpretq_u32_s64(v[2 * i + 1]));
      most = vmaxq_u32(most, vaddq_u32(high, vdupq_n_u32(1U << 21)));
    }
    return vmaxvq_u32(most) >= 1U << 22;
  }
  BERTH_ARM_INLINE static int64x2_t odd(int64x2_t v) noexcept {
    const uint64x2_t lost = vdupq_n_u64(0x7ff);
    const uint64x2_t last = vandq_u64(vtstq_s64(v, vreinterpretq_s64_u64(lost)), vdupq_n_u64(0x400));
    const int64x2_t kept = vbslq_s64(lost, vreinterpretq_s64_u64(last), v);
    const int64x2_t top = vshrq_n_s64(v, 53);
    return vbslq_s64(vceqq_s64(top, vshrq_n_s64(v, 63)), v, kept);
  }
};

// f32 holds integers up to 2^24 exactly. Larger ones go through f64.
struct I32Source {
  static constexpr std::size_t kBytes = 4, kBlocks = 4;
  template <std::size_t N>
  BERTH_ARM_INLINE static void read(Bytes from, F32 (&x)[4 * N]) noexcept {
    int32x4_t v[4 * N];
    V32 most[N] = {};
    BERTH_EACH(4 * N) v[i] = vreinterpretq_s32_u8(vld1q_u8(from + i * 16));
    BERTH_EACH(4 * N) most[i / 4] = vmaxq_u32(most[i / 4], vreinterpretq_u32_s32(vaddq_s32(v[i], vdupq_n_s32(1 << 24))));
    BERTH_EACH(4 * N) x[i] = vcvtq_f32_s32(v[i]);
    BERTH_EACH(N) most[0] = vmaxq_u32(most[0], most[i]);
    if (vmaxvq_u32(most[0]) >= 1U << 25) [[unlikely]] {
      BERTH_EACH(4 * N) x[i] = odd(v[i]);
    }
  }
  BERTH_ARM_INLINE static F32 odd(int32x4_t v) noexcept {
    return narrow<Rounding::odd>(vcvtq_f64_s64(vmovl_s32(vget_low_s32(v))), vcvtq_f64_s64(vmovl_high_s32(v)));
  }
};

}  // namespace berth::internal::copy::arm

#endif
