// SPDX-License-Identifier: Apache-2.0
#include "copy/kernels/arm_casts.h"

#if defined(__aarch64__)

#include <arm_neon.h>

#include <cstdint>
#include <cstring>

#include "os/system.h"

// Lets the assembler know instructions that not every processor has, in these functions alone. Compilers agree on all but the spelling.
#if defined(__clang__)
#define BERTH_ARM __attribute__((target("bf16,fullfp16")))
#else
#define BERTH_ARM __attribute__((target("+bf16+fp16")))
#endif
#define BERTH_ARM_INLINE BERTH_ARM __attribute__((always_inline)) inline
// One step, of all vectors.
#define BERTH_EACH(count) _Pragma("GCC unroll 16") for (std::size_t i = 0; i < (count); ++i)

namespace berth {

namespace {

using Bytes = const std::uint8_t*;
using V8 = uint8x16_t;
using V16 = uint16x8_t;
using V32 = uint32x4_t;
using F32 = float32x4_t;

constexpr std::size_t kBlock = 16;  // elements

// ---- What has no name that all compilers know.

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

// ---- Vectors of neighbours: halves of lanes, and lanes in the place of the high halves of wider ones.

BERTH_ARM_INLINE V16 low_halves(V32 a, V32 b) noexcept { return vuzp1q_u16(vreinterpretq_u16_u32(a), vreinterpretq_u16_u32(b)); }
BERTH_ARM_INLINE V16 high_halves(V32 a, V32 b) noexcept { return vuzp2q_u16(vreinterpretq_u16_u32(a), vreinterpretq_u16_u32(b)); }
BERTH_ARM_INLINE V8 low_halves(V16 a, V16 b) noexcept { return vuzp1q_u8(vreinterpretq_u8_u16(a), vreinterpretq_u8_u16(b)); }
BERTH_ARM_INLINE V8 high_halves(V16 a, V16 b) noexcept { return vuzp2q_u8(vreinterpretq_u8_u16(a), vreinterpretq_u8_u16(b)); }
// The first eight or the second.
BERTH_ARM_INLINE F32 raise(V16 v, bool upper) noexcept {
  const V16 zero = vdupq_n_u16(0);
  return vreinterpretq_f32_u16(upper ? vzip2q_u16(zero, v) : vzip1q_u16(zero, v));
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
template <std::size_t Count>
BERTH_ARM_INLINE void load(Bytes from, V32 (&v)[Count]) noexcept {
  BERTH_EACH(Count) v[i] = vreinterpretq_u32_u8(vld1q_u8(from + i * 16));
}
template <std::size_t Count>
BERTH_ARM_INLINE void store(const V8 (&v)[Count], std::uint8_t* to) noexcept {
  BERTH_EACH(Count) vst1q_u8(to + i * 16, v[i]);
}
template <std::size_t Count>
BERTH_ARM_INLINE void store(const V16 (&v)[Count], std::uint8_t* to) noexcept {
  BERTH_EACH(Count) vst1q_u8(to + i * 16, vreinterpretq_u8_u16(v[i]));
}
template <std::size_t Count>
BERTH_ARM_INLINE void store(const F32 (&v)[Count], std::uint8_t* to) noexcept {
  BERTH_EACH(Count) vst1q_u8(to + i * 16, vreinterpretq_u8_f32(v[i]));
}

// ---- Casts. Each has the sizes of its elements, how many blocks it takes together, and run<Blocks>.

struct F32ToBf16 {
  static constexpr std::size_t kFrom = 4, kTo = 2, kBlocks = 1;
  template <std::size_t N>
  BERTH_ARM_INLINE static void run(Bytes from, std::uint8_t* to) noexcept {
    V32 x[4 * N];
    V16 out[2 * N];
    load(from, x);
    BERTH_EACH(2 * N) out[i] = narrow_to_bf16(vreinterpretq_f32_u32(x[2 * i]), vreinterpretq_f32_u32(x[2 * i + 1]));
    store(out, to);
  }
};

// Toward zero; what does not fit becomes the nearest that does; NaN becomes 0.
template <bool Signed>
struct F32ToByte {
  static constexpr std::size_t kFrom = 4, kTo = 1, kBlocks = 2;
  template <std::size_t N>
  BERTH_ARM_INLINE static void run(Bytes from, std::uint8_t* to) noexcept {
    V32 x[4 * N];
    int32x4_t whole[4 * N];
    int16x8_t half[2 * N];
    V8 out[N];
    load(from, x);
    BERTH_EACH(4 * N) whole[i] = vcvtq_s32_f32(vreinterpretq_f32_u32(x[i]));
    BERTH_EACH(2 * N) half[i] = vqmovn_high_s32(vqmovn_s32(whole[2 * i]), whole[2 * i + 1]);
    BERTH_EACH(N) out[i] = bytes(half[2 * i], half[2 * i + 1]);
    store(out, to);
  }
  BERTH_ARM_INLINE static V8 bytes(int16x8_t a, int16x8_t b) noexcept {
    if constexpr (Signed)
      return vreinterpretq_u8_s8(vqmovn_high_s16(vqmovn_s16(a), b));
    else
      return vqmovun_high_s16(vqmovun_s16(a), b);
  }
};

template <bool Signed>
struct F16ToByte {
  static constexpr std::size_t kFrom = 2, kTo = 1, kBlocks = 2;
  template <std::size_t N>
  BERTH_ARM_INLINE static void run(Bytes from, std::uint8_t* to) noexcept {
    V16 x[2 * N];
    int16x8_t whole[2 * N];
    V8 out[N];
    load(from, x);
    BERTH_EACH(2 * N) whole[i] = truncate_f16(x[i]);
    BERTH_EACH(N) out[i] = F32ToByte<Signed>::bytes(whole[2 * i], whole[2 * i + 1]);
    store(out, to);
  }
};

// 2^10 + n has n in its last bits.
template <bool Signed>
struct ByteToF16 {
  static constexpr std::size_t kFrom = 1, kTo = 2, kBlocks = 2;
  template <std::size_t N>
  BERTH_ARM_INLINE static void run(Bytes from, std::uint8_t* to) noexcept {
    constexpr std::uint16_t kBias = Signed ? 0x6480 : 0x6400;  // 1024, and the 128 that are added to make it unsigned
    V8 x[N];
    V16 out[2 * N];
    load(from, x);
    if constexpr (Signed) BERTH_EACH(N) x[i] = veorq_u8(x[i], vdupq_n_u8(0x80));
    BERTH_EACH(2 * N) out[i] = zip(x[i / 2], vdupq_n_u8(0x64), i % 2 != 0);
    BERTH_EACH(2 * N) out[i] = subtract_f16(out[i], vdupq_n_u16(kBias));
    store(out, to);
  }
};

// A code is the top byte of an f16. The product makes NaN quiet.
struct E5m2ToF16 {
  static constexpr std::size_t kFrom = 1, kTo = 2, kBlocks = 2;
  template <std::size_t N>
  BERTH_ARM_INLINE static void run(Bytes from, std::uint8_t* to) noexcept {
    constexpr std::uint16_t kOne = 0x3c00;
    V8 x[N];
    V16 out[2 * N];
    load(from, x);
    BERTH_EACH(2 * N) out[i] = zip(vdupq_n_u8(0), x[i / 2], i % 2 != 0);
    BERTH_EACH(2 * N) out[i] = multiply_f16(out[i], vdupq_n_u16(kOne));
    store(out, to);
  }
};

// Whether a code of f8e4m3 is NaN, which is rare: found out in general registers, which have nothing else to do.
BERTH_ARM_INLINE bool has_nan(Bytes codes, std::size_t count) noexcept {
  std::uint64_t seen = 0;
  _Pragma("GCC unroll 16") for (std::size_t i = 0; i < count; i += 8) {
    std::uint64_t word;
    std::memcpy(&word, codes + i, 8);
    asm("" : "+r"(word));  // else it becomes vectors
    seen |= (word & 0x7f7f7f7f7f7f7f7fU) + 0x0101010101010101U;
    asm("" : "+r"(seen));
  }
  return (seen & 0x8080808080808080U) != 0;
}

// A code of f8e4m3, moved to where a wider format has its exponent, is a value of that format but for the bias, subnormals included; a product
// with a power of two makes up for that, exactly. Here, eight codes in the top 16 bits of the wider format. NaN, which f8e4m3 has
// where others have a number, is put in place before the product.
template <int Shift, std::uint16_t Between, std::uint16_t Nan, bool HasNan>
BERTH_ARM_INLINE V16 place_e4m3(V8 codes, bool upper) noexcept {
  const int8x16_t v = vreinterpretq_s8_u8(codes);
  const V16 wide = vreinterpretq_u16_s16(upper ? vshll_high_n_s8(v, Shift) : vshll_n_s8(vget_low_s8(v), Shift));
  const V16 placed = vbicq_u16(wide, vdupq_n_u16(Between));  // copies of the sign
  if constexpr (!HasNan) return placed;
  constexpr std::uint16_t kAll = 0x7f << Shift;
  const V16 is_nan = vceqq_u16(vbicq_u16(placed, vdupq_n_u16(0x8000)), vdupq_n_u16(kAll));
  return veorq_u16(placed, vandq_u16(is_nan, vdupq_n_u16(kAll ^ Nan)));
}

struct E4m3ToF32 {
  static constexpr std::size_t kFrom = 1, kTo = 4, kBlocks = 4;
  template <std::size_t N>
  BERTH_ARM_INLINE static void run(Bytes from, std::uint8_t* to) noexcept {
    has_nan(from, N * kBlock) ? decode<N, true>(from, to) : decode<N, false>(from, to);
  }
  template <std::size_t N, bool HasNan>
  BERTH_ARM_INLINE static void decode(Bytes from, std::uint8_t* to) noexcept {
    V8 x[N];
    V16 placed[2 * N];
    F32 out[4 * N];
    load(from, x);
    BERTH_EACH(2 * N) placed[i] = place_e4m3<4, 0x7800, 0x7fc0, HasNan>(x[i / 2], i % 2 != 0);
    BERTH_EACH(4 * N) out[i] = raise(placed[i / 2], i % 2 != 0);
    BERTH_EACH(4 * N) out[i] = vmulq_f32(out[i], vdupq_n_f32(0x1p120F));
    store(out, to);
  }
};

struct E4m3ToF16 {
  static constexpr std::size_t kFrom = 1, kTo = 2, kBlocks = 4;
  template <std::size_t N>
  BERTH_ARM_INLINE static void run(Bytes from, std::uint8_t* to) noexcept {
    has_nan(from, N * kBlock) ? decode<N, true>(from, to) : decode<N, false>(from, to);
  }
  template <std::size_t N, bool HasNan>
  BERTH_ARM_INLINE static void decode(Bytes from, std::uint8_t* to) noexcept {
    constexpr std::uint16_t k256 = 0x5c00;
    V8 x[N];
    V16 out[2 * N];
    load(from, x);
    BERTH_EACH(2 * N) out[i] = place_e4m3<7, 0x4000, 0x7e00, HasNan>(x[i / 2], i % 2 != 0);
    BERTH_EACH(2 * N) out[i] = multiply_f16(out[i], vdupq_n_u16(k256));
    store(out, to);
  }
};

// To 8-bit floats, as Highway's cast does: adding a power of two so many places above the last bit that is kept makes the processor round
// there, and what it changed in the sum's last bits is the mantissa. Exponents are handled as bytes. They and the mantissa make the
// code, plus 128, so that what is past the largest stays at 255; a sign takes the place of the 128.
template <class F>
struct F32ToFloat8 {
  static constexpr std::size_t kFrom = 4, kTo = 1, kBlocks = 4;
  static constexpr bool kHasInfinity = (F::kLargest & F::kMantissa) == F::kMantissa;
  static constexpr int kMantissaBits = kHasInfinity ? 2 : 3;
  static constexpr std::uint8_t kLeast = 128 - F::kBias;  // the exponent of the least normal value, as in f32
  static constexpr float kPlace = kHasInfinity ? 0x1.8p21F : 0x1.8p20F;  // one and a half: the sum stays in its binade whatever the sign

  template <std::size_t N>
  BERTH_ARM_INLINE static void run(Bytes from, std::uint8_t* to) noexcept {
    V32 x[4 * N];
    V16 high[2 * N];
    V16 power[2 * N];
    F32 sum[4 * N];
    V16 low[2 * N];
    V8 exponent[N];
    V8 top[N];
    V8 out[N];
    load(from, x);
    BERTH_EACH(2 * N) high[i] = high_halves(x[2 * i], x[2 * i + 1]);
    BERTH_EACH(N) exponent[i] = vshrn_high_n_u16(vshrn_n_u16(high[2 * i], 7), high[2 * i + 1], 7);
    BERTH_EACH(N) top[i] = high_halves(high[2 * i], high[2 * i + 1]);
    BERTH_EACH(N) exponent[i] = vmaxq_u8(exponent[i], vdupq_n_u8(kLeast));
    BERTH_EACH(2 * N) power[i] = i % 2 != 0 ? vshll_high_n_u8(exponent[i / 2], 7) : vshll_n_u8(vget_low_u8(exponent[i / 2]), 7);
    BERTH_EACH(4 * N) sum[i] = raise(power[i / 2], i % 2 != 0);
    BERTH_EACH(4 * N) sum[i] = vfmaq_f32(vreinterpretq_f32_u32(x[i]), sum[i], vdupq_n_f32(kPlace));
    BERTH_EACH(2 * N) low[i] = low_halves(vreinterpretq_u32_f32(sum[2 * i]), vreinterpretq_u32_f32(sum[2 * i + 1]));
    BERTH_EACH(N) out[i] = low_halves(low[2 * i], low[2 * i + 1]);
    BERTH_EACH(N) out[i] = vreinterpretq_u8_s8(vabsq_s8(vreinterpretq_s8_u8(out[i])));
    V8 past_largest = vdupq_n_u8(0);
    if constexpr (kHasInfinity) BERTH_EACH(N) past_largest = vmaxq_u8(past_largest, exponent[i]);
    BERTH_EACH(N) exponent[i] = vsubq_u8(exponent[i], vdupq_n_u8(kLeast - (128 >> kMantissaBits)));
    BERTH_EACH(N) exponent[i] = vqshlq_n_u8(exponent[i], kMantissaBits);
    BERTH_EACH(N) out[i] = vqaddq_u8(out[i], exponent[i]);
    if constexpr (kHasInfinity) {
      BERTH_EACH(N) out[i] = vminq_u8(out[i], vdupq_n_u8(0x80 | F::kExponent));
      if (vmaxvq_u8(past_largest) == 255) [[unlikely]]
        put_nan<N>(x, high, out);
    }
    BERTH_EACH(N) out[i] = with_signs(out[i], top[i]);
    store(out, to);
  }

  // Quiet, with the top bit of the payload that is left.
  template <std::size_t N>
  BERTH_ARM_INLINE static void put_nan(const V32 (&x)[4 * N], const V16 (&high)[2 * N], V8 (&out)[N]) noexcept {
    BERTH_EACH(N) {
      const V8 number = low_halves(low_halves(is_number(x[4 * i]), is_number(x[4 * i + 1])),
                                   low_halves(is_number(x[4 * i + 2]), is_number(x[4 * i + 3])));
      const V8 payload = vandq_u8(vshrn_high_n_u16(vshrn_n_u16(high[2 * i], 5), high[2 * i + 1], 5), vdupq_n_u8(1));
      out[i] = vbslq_u8(number, out[i], vorrq_u8(payload, vdupq_n_u8(0x7e)));
    }
  }
  BERTH_ARM_INLINE static V32 is_number(V32 v) noexcept { return vceqq_f32(vreinterpretq_f32_u32(v), vreinterpretq_f32_u32(v)); }
};

// The same from f16, where a vector holds eight and the sum does not leave 16 bits. What is past the largest is 480 first, whose code is NaN's.
struct F16ToE4m3 {
  static constexpr std::size_t kFrom = 2, kTo = 1, kBlocks = 4;
  template <std::size_t N>
  BERTH_ARM_INLINE static void run(Bytes from, std::uint8_t* to) noexcept {
    constexpr std::uint16_t kBeyond = 0x5f80;  // 480
    constexpr std::uint16_t kLeast = 9 << 10;  // 2^-6
    constexpr std::uint16_t k128 = 0x5800;
    V16 x[2 * N];
    V16 magnitude[2 * N];
    V16 power[2 * N];
    V8 out[N];
    load(from, x);
    BERTH_EACH(2 * N) magnitude[i] = vbicq_u16(x[i], vdupq_n_u16(0x8000));
    BERTH_EACH(2 * N) magnitude[i] = vminq_u16(magnitude[i], vdupq_n_u16(kBeyond));
    BERTH_EACH(2 * N) power[i] = vandq_u16(magnitude[i], vdupq_n_u16(0x7c00));
    BERTH_EACH(2 * N) power[i] = vmaxq_u16(power[i], vdupq_n_u16(kLeast));
    BERTH_EACH(2 * N) magnitude[i] = multiply_add_f16(magnitude[i], power[i], vdupq_n_u16(k128));
    BERTH_EACH(2 * N) magnitude[i] = vsraq_n_u16(magnitude[i], power[i], 7);
    // The sum's own exponent is above the eight bits that are kept.
    BERTH_EACH(N) out[i] = low_halves(magnitude[2 * i], magnitude[2 * i + 1]);
    BERTH_EACH(N) out[i] = vsubq_u8(out[i], vdupq_n_u8(kLeast >> 7));
    BERTH_EACH(N) out[i] = with_signs(out[i], high_halves(x[2 * i], x[2 * i + 1]));
    store(out, to);
  }
};

// The top byte, rounded to even. NaN is not rounded, but made quiet.
struct F16ToE5m2 {
  static constexpr std::size_t kFrom = 2, kTo = 1, kBlocks = 4;
  template <std::size_t N>
  BERTH_ARM_INLINE static void run(Bytes from, std::uint8_t* to) noexcept {
    V16 x[2 * N];
    V16 number[2 * N];
    V16 up[2 * N];
    V8 out[N];
    load(from, x);
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

// Through f64, which holds an integer of up to 2^53 as it is. Of larger ones, which are rare, what it cannot hold is kept as the last bit that
// it can.
template <Rounding How>
struct I64ToF32 {
  static constexpr std::size_t kFrom = 8, kTo = 4, kBlocks = 1;
  template <std::size_t N>
  BERTH_ARM_INLINE static void run(Bytes from, std::uint8_t* to) noexcept {
    int64x2_t x[8 * N];
    float64x2_t wide[8 * N];
    F32 out[4 * N];
    BERTH_EACH(8 * N) x[i] = vreinterpretq_s64_u8(vld1q_u8(from + i * 16));
    if (has_large(x)) [[unlikely]]
      BERTH_EACH(8 * N) x[i] = odd(x[i]);
    BERTH_EACH(8 * N) wide[i] = vcvtq_f64_s64(x[i]);
    BERTH_EACH(4 * N) out[i] = narrow(wide[2 * i], wide[2 * i + 1]);
    store(out, to);
  }
  BERTH_ARM_INLINE static F32 narrow(float64x2_t a, float64x2_t b) noexcept {
    if constexpr (How == Rounding::odd)
      return vcvtx_high_f32_f64(vcvtx_f32_f64(a), b);
    else
      return vcvt_high_f32_f64(vcvt_f32_f64(a), b);
  }
  // Whether the high half of one is not within 2^21 of 0.
  template <std::size_t Count>
  BERTH_ARM_INLINE static bool has_large(const int64x2_t (&x)[Count]) noexcept {
    V32 most = vdupq_n_u32(0);
    BERTH_EACH(Count / 2) {
      const V32 high = vuzp2q_u32(vreinterpretq_u32_s64(x[2 * i]), vreinterpretq_u32_s64(x[2 * i + 1]));
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

// In the order of cast_row in simd.cc.
template <class Op>
BERTH_ARM void cast_row(const std::byte* source, std::byte* target, std::size_t count) noexcept {
  constexpr std::size_t kGroup = Op::kBlocks * kBlock;
  const auto* from = reinterpret_cast<Bytes>(source);
  auto* to = reinterpret_cast<std::uint8_t*>(target);
  if (count >= kManyElements) {
    const std::size_t half = count / (2 * kGroup) * kGroup;
    for (std::size_t i = 0; i < half; i += kGroup) {
      Op::template run<Op::kBlocks>(from + i * Op::kFrom, to + i * Op::kTo);
      Op::template run<Op::kBlocks>(from + (half + i) * Op::kFrom, to + (half + i) * Op::kTo);
    }
    count -= 2 * half;
    from += 2 * half * Op::kFrom;
    to += 2 * half * Op::kTo;
  }
  for (; count >= kGroup; count -= kGroup, from += kGroup * Op::kFrom, to += kGroup * Op::kTo) Op::template run<Op::kBlocks>(from, to);
  for (; count >= kBlock; count -= kBlock, from += kBlock * Op::kFrom, to += kBlock * Op::kTo) Op::template run<1>(from, to);
  if (count == 0) return;
  std::uint8_t last[kBlock * Op::kFrom] = {};
  std::uint8_t done[kBlock * Op::kTo];
  std::memcpy(last, from, count * Op::kFrom);
  Op::template run<1>(last, done);
  std::memcpy(to, done, count * Op::kTo);
}

}  // namespace

Kernels with_arm_casts(const Kernels& kernels) noexcept {
  using enum DType;
  Kernels out = kernels;
  out.name = "NEON by hand";
  const auto set = [&out](DType from, DType to, ConvertRow row, Rounding rounding = Rounding::nearest) {
    out.casts[cast_index({from, to, rounding})] = row;
  };
  set(f8e4m3, f32, cast_row<E4m3ToF32>);
  set(f32, f8e4m3, cast_row<F32ToFloat8<float8_e4m3>>);
  set(f32, f8e5m2, cast_row<F32ToFloat8<float8_e5m2>>);
  set(f32, i8, cast_row<F32ToByte<true>>);
  set(f32, u8, cast_row<F32ToByte<false>>);
  set(i64, f32, cast_row<I64ToF32<Rounding::nearest>>);
  set(i64, f32, cast_row<I64ToF32<Rounding::odd>>, Rounding::odd);
  if (os::cpu_rounds_to_bf16()) set(f32, bf16, cast_row<F32ToBf16>);
  if (!os::cpu_computes_in_f16()) return out;
  set(u8, f16, cast_row<ByteToF16<false>>);
  set(i8, f16, cast_row<ByteToF16<true>>);
  set(f8e4m3, f16, cast_row<E4m3ToF16>);
  set(f8e5m2, f16, cast_row<E5m2ToF16>);
  set(f16, u8, cast_row<F16ToByte<false>>);
  set(f16, i8, cast_row<F16ToByte<true>>);
  set(f16, f8e4m3, cast_row<F16ToE4m3>);
  set(f16, f8e5m2, cast_row<F16ToE5m2>);
  return out;
}

}  // namespace berth

#else

namespace berth {

Kernels with_arm_casts(const Kernels& kernels) noexcept { return kernels; }

}  // namespace berth

#endif
