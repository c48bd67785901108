// SPDX-License-Identifier: Apache-2.0
#pragma once

#if defined(__aarch64__)

#include "berth/base/float_types.h"
#include "copy/kernels/arm_vectors.h"

// How f32 or f16 are written as elements of other dtypes. kBlocks is how many blocks are best processed
// together. For arm_casts.cc; stateless.
namespace berth::internal::copy::arm {

struct F32Target {
  static constexpr std::size_t kBytes = 4, kBlocks = 4;
  template <std::size_t N>
  BERTH_ARM_INLINE static void write(const F32 (&x)[4 * N], std::uint8_t* to) noexcept {
    store(x, to);
  }
};

struct F16Target {
  static constexpr std::size_t kBytes = 2, kBlocks = 4;
  template <std::size_t N>
  BERTH_ARM_INLINE static void write(const F32 (&x)[4 * N], std::uint8_t* to) noexcept {
    V16 out[2 * N];
    BERTH_EACH(2 * N) out[i] = vreinterpretq_u16_f16(vcvt_high_f16_f32(vcvt_f16_f32(x[2 * i]), x[2 * i + 1]));
    store(out, to);
  }
  template <std::size_t N>
  BERTH_ARM_INLINE static void write(const V16 (&x)[2 * N], std::uint8_t* to) noexcept {
    store(x, to);
  }
};

struct Bf16Target {
  static constexpr std::size_t kBytes = 2, kBlocks = 1;
  template <std::size_t N>
  BERTH_ARM_INLINE static void write(const F32 (&x)[4 * N], std::uint8_t* to) noexcept {
    V16 out[2 * N];
    BERTH_EACH(2 * N) out[i] = narrow_to_bf16(x[2 * i], x[2 * i + 1]);
    store(out, to);
  }
};

// For values that bf16 holds exactly.
struct ExactBf16Target {
  static constexpr std::size_t kBytes = 2, kBlocks = 2;
  template <std::size_t N>
  BERTH_ARM_INLINE static void write(const F32 (&x)[4 * N], std::uint8_t* to) noexcept {
    V16 out[2 * N];
    BERTH_EACH(2 * N) out[i] = high_halves(vreinterpretq_u32_f32(x[2 * i]), vreinterpretq_u32_f32(x[2 * i + 1]));
    store(out, to);
  }
};

// Rounds toward zero and saturates; NaN becomes 0.
struct I32Target {
  static constexpr std::size_t kBytes = 4, kBlocks = 2;
  template <std::size_t N>
  BERTH_ARM_INLINE static void write(const F32 (&x)[4 * N], std::uint8_t* to) noexcept {
    V8 out[4 * N];
    BERTH_EACH(4 * N) out[i] = vreinterpretq_u8_s32(vcvtq_s32_f32(x[i]));
    store(out, to);
  }
};

template <bool Signed>
struct ByteTarget {
  static constexpr std::size_t kBytes = 1, kBlocks = 2;
  template <std::size_t N>
  BERTH_ARM_INLINE static void write(const F32 (&x)[4 * N], std::uint8_t* to) noexcept {
    int32x4_t whole[4 * N];
    int16x8_t half[2 * N];
    BERTH_EACH(4 * N) whole[i] = vcvtq_s32_f32(x[i]);
    BERTH_EACH(2 * N) half[i] = vqmovn_high_s32(vqmovn_s32(whole[2 * i]), whole[2 * i + 1]);
    narrow<N>(half, to);
  }
  template <std::size_t N>
  BERTH_ARM_INLINE static void write(const V16 (&x)[2 * N], std::uint8_t* to) noexcept {
    int16x8_t whole[2 * N];
    BERTH_EACH(2 * N) whole[i] = truncate_f16(x[i]);
    narrow<N>(whole, to);
  }
  template <std::size_t N>
  BERTH_ARM_INLINE static void narrow(const int16x8_t (&x)[2 * N], std::uint8_t* to) noexcept {
    V8 out[N];
    if constexpr (Signed)
      BERTH_EACH(N) out[i] = vreinterpretq_u8_s8(vqmovn_high_s16(vqmovn_s16(x[2 * i]), x[2 * i + 1]));
    else
      BERTH_EACH(N) out[i] = vqmovun_high_s16(vqmovun_s16(x[2 * i]), x[2 * i + 1]);
    store(out, to);
  }
};

// As in float_casts-inl.h: adding a power of two, chosen by the position of the last kept bit, makes the
// processor round at that bit, and the sum's low bits hold the mantissa. Exponents are handled as bytes.
// Exponent and mantissa add up to the code plus 128, so that values past the largest saturate at 255; the sign
// bit then replaces the 128.
template <class F>
struct Float8Target {
  static constexpr std::size_t kBytes = 1, kBlocks = 4;
  static constexpr bool kHasInfinity = (F::kLargest & F::kMantissa) == F::kMantissa;
  static constexpr int kMantissaBits = kHasInfinity ? 2 : 3;
  // The exponent of the smallest normal value, as in f32.
  static constexpr std::uint8_t kLeast = 128 - F::kBias;
  // 1.5: the sum stays in its binade for either sign.
  static constexpr float kPlace = kHasInfinity ? 0x1.8p21F : 0x1.8p20F;

  template <std::size_t N>
  BERTH_ARM_INLINE static void write(const F32 (&x)[4 * N], std::uint8_t* to) noexcept {
    V16 high[2 * N];
    V16 power[2 * N];
    F32 sum[4 * N];
    V16 low[2 * N];
    V8 exponent[N];
    V8 top[N];
    V8 out[N];
    BERTH_EACH(2 * N) high[i] = high_halves(vreinterpretq_u32_f32(x[2 * i]), vreinterpretq_u32_f32(x[2 * i + 1]));
    BERTH_EACH(N) exponent[i] = vshrn_high_n_u16(vshrn_n_u16(high[2 * i], 7), high[2 * i + 1], 7);
    BERTH_EACH(N) top[i] = high_halves(high[2 * i], high[2 * i + 1]);
    BERTH_EACH(N) exponent[i] = vmaxq_u8(exponent[i], vdupq_n_u8(kLeast));
    BERTH_EACH(2 * N) power[i] = i % 2 != 0 ? vshll_high_n_u8(exponent[i / 2], 7) : vshll_n_u8(vget_low_u8(exponent[i / 2]), 7);
    BERTH_EACH(4 * N) sum[i] = raise(power[i / 2], i % 2 != 0);
    BERTH_EACH(4 * N) sum[i] = vfmaq_f32(x[i], sum[i], vdupq_n_f32(kPlace));
    BERTH_EACH(2 * N) low[i] = low_halves(vreinterpretq_u32_f32(sum[2 * i]), vreinterpretq_u32_f32(sum[2 * i + 1]));
    BERTH_EACH(N) out[i] = low_halves(low[2 * i], low[2 * i + 1]);
    BERTH_EACH(N) out[i] = vreinterpretq_u8_s8(vabsq_s8(vreinterpretq_s8_u8(out[i])));
    V8 most = vdupq_n_u8(0);
    if constexpr (kHasInfinity) BERTH_EACH(N) most = vmaxq_u8(most, exponent[i]);
    BERTH_EACH(N) exponent[i] = vsubq_u8(exponent[i], vdupq_n_u8(kLeast - (128 >> kMantissaBits)));
    BERTH_EACH(N) exponent[i] = vqshlq_n_u8(exponent[i], kMantissaBits);
    BERTH_EACH(N) out[i] = vqaddq_u8(out[i], exponent[i]);
    if constexpr (kHasInfinity) {
      BERTH_EACH(N) out[i] = vminq_u8(out[i], vdupq_n_u8(0x80 | F::kExponent));
      if (vmaxvq_u8(most) == 255) [[unlikely]]
        put_nan<N>(x, high, out);
    }
    BERTH_EACH(N) out[i] = with_signs(out[i], top[i]);
    store(out, to);
  }

  // A quiet NaN with the one payload bit that fits.
  template <std::size_t N>
  BERTH_ARM_INLINE static void put_nan(const F32 (&x)[4 * N], const V16 (&high)[2 * N], V8 (&out)[N]) noexcept {
    BERTH_EACH(N) {
      const V16 first = low_halves(vceqq_f32(x[4 * i], x[4 * i]), vceqq_f32(x[4 * i + 1], x[4 * i + 1]));
      const V16 second = low_halves(vceqq_f32(x[4 * i + 2], x[4 * i + 2]), vceqq_f32(x[4 * i + 3], x[4 * i + 3]));
      const V8 payload = vandq_u8(vshrn_high_n_u16(vshrn_n_u16(high[2 * i], 5), high[2 * i + 1], 5), vdupq_n_u8(1));
      out[i] = vbslq_u8(low_halves(first, second), out[i], vorrq_u8(payload, vdupq_n_u8(0x7e)));
    }
  }

  template <std::size_t N>
  BERTH_ARM_INLINE static void write(const V16 (&x)[2 * N], std::uint8_t* to) noexcept {
    if constexpr (kHasInfinity)
      write_top_bytes<N>(x, to);
    else
      write_sums<N>(x, to);
  }
  // The same from f16: the sum fits into 16 bits. Values past the largest are clamped to 480 first, whose code
  // is NaN.
  template <std::size_t N>
  BERTH_ARM_INLINE static void write_sums(const V16 (&x)[2 * N], std::uint8_t* to) noexcept {
    constexpr std::uint16_t kBeyond = 0x5f80;     // 480
    constexpr std::uint16_t kLeastF16 = 9 << 10;  // 2^-6
    constexpr std::uint16_t k128 = 0x5800;
    V16 sum[2 * N];
    V16 power[2 * N];
    V8 out[N];
    BERTH_EACH(2 * N) sum[i] = vbicq_u16(x[i], vdupq_n_u16(0x8000));
    BERTH_EACH(2 * N) sum[i] = vminq_u16(sum[i], vdupq_n_u16(kBeyond));
    BERTH_EACH(2 * N) power[i] = vandq_u16(sum[i], vdupq_n_u16(0x7c00));
    BERTH_EACH(2 * N) power[i] = vmaxq_u16(power[i], vdupq_n_u16(kLeastF16));
    BERTH_EACH(2 * N) sum[i] = multiply_add_f16(sum[i], power[i], vdupq_n_u16(k128));
    BERTH_EACH(2 * N) sum[i] = vsraq_n_u16(sum[i], power[i], 7);
    BERTH_EACH(N) out[i] = low_halves(sum[2 * i], sum[2 * i + 1]);  // drops the sum's own exponent
    BERTH_EACH(N) out[i] = vsubq_u8(out[i], vdupq_n_u8(kLeastF16 >> 7));
    BERTH_EACH(N) out[i] = with_signs(out[i], high_halves(x[2 * i], x[2 * i + 1]));
    store(out, to);
  }
  // f8e5m2 is the top byte of f16, rounded to nearest even. NaN is not rounded, but made quiet.
  template <std::size_t N>
  BERTH_ARM_INLINE static void write_top_bytes(const V16 (&x)[2 * N], std::uint8_t* to) noexcept {
    V16 number[2 * N];
    V16 up[2 * N];
    V8 out[N];
    BERTH_EACH(2 * N) number[i] = is_number_f16(x[i]);
    BERTH_EACH(2 * N) up[i] = vandq_u16(x[i], vdupq_n_u16(0x100));
    BERTH_EACH(2 * N) up[i] = vsraq_n_u16(vdupq_n_u16(0x7f), up[i], 8);
    BERTH_EACH(2 * N) up[i] = vandq_u16(up[i], number[i]);
    BERTH_EACH(2 * N) up[i] = vaddq_u16(x[i], up[i]);
    BERTH_EACH(N) out[i] = high_halves(up[2 * i], up[2 * i + 1]);
    BERTH_EACH(N) out[i] = vorrq_u8(out[i], vbicq_u8(vdupq_n_u8(2), low_halves(number[2 * i], number[2 * i + 1])));
    store(out, to);
  }
};

}  // namespace berth::internal::copy::arm

#endif
