// SPDX-License-Identifier: Apache-2.0
#include "copy/kernels/arm_casts.h"

#if defined(__aarch64__)

#include <arm_neon.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "berth/copy/convert.h"
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
// In the order of memory, which compilers would change: a core that does not see whole lines written one after another reads them first. That
// made f8e4m3 → f32 three times slower.
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

// ---- Reading elements as f32, four vectors to a block, or as f16, two of them.

struct F32Source {
  static constexpr std::size_t kBytes = 4;
  template <std::size_t N>
  BERTH_ARM_INLINE static void read(Bytes from, F32 (&x)[4 * N]) noexcept {
    BERTH_EACH(4 * N) x[i] = vreinterpretq_f32_u8(vld1q_u8(from + i * 16));
  }
};

// NaN stays as it is: what it is made into will be quiet.
struct Bf16Source {
  static constexpr std::size_t kBytes = 2;
  template <std::size_t N>
  BERTH_ARM_INLINE static void read(Bytes from, F32 (&x)[4 * N]) noexcept {
    V16 v[2 * N];
    load(from, v);
    BERTH_EACH(4 * N) x[i] = raise(v[i / 2], i % 2 != 0);
  }
};

struct F16Source {
  static constexpr std::size_t kBytes = 2;
  template <std::size_t N>
  BERTH_ARM_INLINE static void read(Bytes from, V16 (&x)[2 * N]) noexcept {
    load(from, x);
  }
};

// 2^23 + n, or in f16 2^10 + n, has n in its last bits. A signed byte is made unsigned by adding 128 first.
template <bool Signed>
struct ByteSource {
  static constexpr std::size_t kBytes = 1;
  template <std::size_t N>
  BERTH_ARM_INLINE static void read_bytes(Bytes from, V8 (&v)[N]) noexcept {
    load(from, v);
    if constexpr (Signed) BERTH_EACH(N) v[i] = veorq_u8(v[i], vdupq_n_u8(0x80));
  }
  template <std::size_t N>
  BERTH_ARM_INLINE static void read(Bytes from, F32 (&x)[4 * N]) noexcept {
    V8 v[N];
    V16 low[2 * N];
    read_bytes<N>(from, v);
    BERTH_EACH(2 * N) low[i] = zip(v[i / 2], vdupq_n_u8(0), i % 2 != 0);
    BERTH_EACH(4 * N) x[i] = vreinterpretq_f32_u16(i % 2 != 0 ? vzip2q_u16(low[i / 2], vdupq_n_u16(0x4b00))
                                                              : vzip1q_u16(low[i / 2], vdupq_n_u16(0x4b00)));
    BERTH_EACH(4 * N) x[i] = vsubq_f32(x[i], vdupq_n_f32(Signed ? 0x1p23F + 128 : 0x1p23F));
  }
  template <std::size_t N>
  BERTH_ARM_INLINE static void read(Bytes from, V16 (&x)[2 * N]) noexcept {
    V8 v[N];
    read_bytes<N>(from, v);
    BERTH_EACH(2 * N) x[i] = zip(v[i / 2], vdupq_n_u8(0x64), i % 2 != 0);
    BERTH_EACH(2 * N) x[i] = subtract_f16(x[i], vdupq_n_u16(Signed ? 0x6480 : 0x6400));
  }
};

// A code is the top byte of an f16. The product makes NaN quiet.
struct E5m2Source {
  static constexpr std::size_t kBytes = 1;
  template <std::size_t N>
  BERTH_ARM_INLINE static void read(Bytes from, V16 (&x)[2 * N]) noexcept {
    constexpr std::uint16_t kOne = 0x3c00;
    V8 v[N];
    load(from, v);
    BERTH_EACH(2 * N) x[i] = zip(vdupq_n_u8(0), v[i / 2], i % 2 != 0);
    BERTH_EACH(2 * N) x[i] = multiply_f16(x[i], vdupq_n_u16(kOne));
  }
};

// A code of f8e4m3, moved to where a wider format has its exponent, is a value of that format but for the bias, subnormals included; a product
// with a power of two makes up for that, exactly. NaN, which f8e4m3 has where others have a number, is put in place before.
struct E4m3Source {
  static constexpr std::size_t kBytes = 1;
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
  // NaN is rare: it is looked for in general registers, which have nothing else to do.
  template <std::size_t N>
  BERTH_ARM_INLINE static bool has_nan(Bytes codes) noexcept {
    std::uint64_t seen = 0;
    BERTH_EACH(2 * N) {
      std::uint64_t word;
      std::memcpy(&word, codes + i * 8, 8);
      asm("" : "+r"(word));  // else it becomes vectors
      seen |= (word & 0x7f7f7f7f7f7f7f7fU) + 0x0101010101010101U;
      asm("" : "+r"(seen));
    }
    return (seen & 0x8080808080808080U) != 0;
  }
};

// ---- Writing them. Each says how many blocks are best taken together.

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

// Of values that bf16 has.
struct ExactBf16Target {
  static constexpr std::size_t kBytes = 2, kBlocks = 2;
  template <std::size_t N>
  BERTH_ARM_INLINE static void write(const F32 (&x)[4 * N], std::uint8_t* to) noexcept {
    V16 out[2 * N];
    BERTH_EACH(2 * N) out[i] = high_halves(vreinterpretq_u32_f32(x[2 * i]), vreinterpretq_u32_f32(x[2 * i + 1]));
    store(out, to);
  }
};

// Toward zero; what does not fit becomes the nearest that does; NaN becomes 0.
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

// As Highway's cast does: adding a power of two so many places above the last bit that is kept makes the processor round there, and what it
// changed in the sum's last bits is the mantissa. Exponents are handled as bytes. They and the mantissa make the code, plus 128, so
// that what is past the largest stays at 255; a sign takes the place of the 128.
template <class F>
struct Float8Target {
  static constexpr std::size_t kBytes = 1, kBlocks = 4;
  static constexpr bool kHasInfinity = (F::kLargest & F::kMantissa) == F::kMantissa;
  static constexpr int kMantissaBits = kHasInfinity ? 2 : 3;
  static constexpr std::uint8_t kLeast = 128 - F::kBias;                 // the exponent of the least normal value, as in f32
  static constexpr float kPlace = kHasInfinity ? 0x1.8p21F : 0x1.8p20F;  // one and a half: the sum stays in its binade whatever the sign

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

  // Quiet, with the top bit of the payload that is left.
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
  // The same from f16: the sum does not leave 16 bits. What is past the largest is 480 first, whose code is NaN's.
  template <std::size_t N>
  BERTH_ARM_INLINE static void write_sums(const V16 (&x)[2 * N], std::uint8_t* to) noexcept {
    constexpr std::uint16_t kBeyond = 0x5f80;    // 480
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
    BERTH_EACH(N) out[i] = low_halves(sum[2 * i], sum[2 * i + 1]);  // the sum's own exponent is above
    BERTH_EACH(N) out[i] = vsubq_u8(out[i], vdupq_n_u8(kLeastF16 >> 7));
    BERTH_EACH(N) out[i] = with_signs(out[i], high_halves(x[2 * i], x[2 * i + 1]));
    store(out, to);
  }
  // f8e5m2 is the top byte of f16, rounded to even. NaN is not rounded, but made quiet.
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

// ---- A cast is a source and a target, and what they have between them in registers: F32 or V16 (f16).
template <class Source, class Target, class Lanes>
struct Through {
  static constexpr std::size_t kFrom = Source::kBytes, kTo = Target::kBytes, kBlocks = Target::kBlocks;
  template <std::size_t N>
  BERTH_ARM_INLINE static void run(Bytes from, std::uint8_t* to) noexcept {
    Lanes x[N * (std::is_same_v<Lanes, F32> ? 4 : 2)];
    Source::template read<N>(from, x);
    Target::template write<N>(x, to);
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
    if constexpr (How == Rounding::odd)
      BERTH_EACH(4 * N) out[i] = vcvtx_high_f32_f64(vcvtx_f32_f64(wide[2 * i]), wide[2 * i + 1]);
    else
      BERTH_EACH(4 * N) out[i] = vcvt_high_f32_f64(vcvt_f32_f64(wide[2 * i]), wide[2 * i + 1]);
    store(out, to);
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

// An integer of up to 2^24 is an f32 as it is. Larger ones go through f64.
struct I32ToOddF32 {
  static constexpr std::size_t kFrom = 4, kTo = 4, kBlocks = 2;
  template <std::size_t N>
  BERTH_ARM_INLINE static void run(Bytes from, std::uint8_t* to) noexcept {
    int32x4_t x[4 * N];
    F32 out[4 * N];
    BERTH_EACH(4 * N) x[i] = vreinterpretq_s32_u8(vld1q_u8(from + i * 16));
    V32 most = vdupq_n_u32(0);
    BERTH_EACH(4 * N) most = vmaxq_u32(most, vreinterpretq_u32_s32(vaddq_s32(x[i], vdupq_n_s32(1 << 24))));
    BERTH_EACH(4 * N) out[i] = vcvtq_f32_s32(x[i]);
    if (vmaxvq_u32(most) >= 1U << 25) [[unlikely]]
      BERTH_EACH(4 * N) out[i] = odd(x[i]);
    store(out, to);
  }
  BERTH_ARM_INLINE static F32 odd(int32x4_t v) noexcept {
    const float64x2_t low = vcvtq_f64_s64(vmovl_s32(vget_low_s32(v)));
    return vcvtx_high_f32_f64(vcvtx_f32_f64(low), vcvtq_f64_s64(vmovl_high_s32(v)));
  }
};

// One or none of them, in the code of To.
template <class To>
struct BoolToFloat8 {
  static constexpr std::size_t kFrom = 1, kTo = 1, kBlocks = 4;
  template <std::size_t N>
  BERTH_ARM_INLINE static void run(Bytes from, std::uint8_t* to) noexcept {
    V8 x[N];
    load(from, x);
    BERTH_EACH(N) x[i] = vtstq_u8(x[i], x[i]);
    BERTH_EACH(N) x[i] = vandq_u8(x[i], vdupq_n_u8(To(1.0).bits));
    store(x, to);
  }
};

// Codes into codes by a table of the 128 magnitudes, for sources whose sign goes over as it is: From is an 8-bit float, or i8.
template <class From, class To>
struct ByTable {
  static constexpr std::size_t kFrom = 1, kTo = 1, kBlocks = 4;
  static constexpr bool kFloat = !std::is_same_v<From, std::int8_t>;
  struct Table {
    std::uint8_t codes[128];
  };
  static constexpr Table make() noexcept {
    Table made{};
    for (unsigned i = 0; i < 128; ++i) {
      if constexpr (kFloat)
        made.codes[i] = To(static_cast<double>(From::from_bits(static_cast<std::uint8_t>(i)))).bits;
      else
        made.codes[i] = To(static_cast<double>(i)).bits;
    }
    return made;
  }
  static constexpr Table kTable = make();

  template <std::size_t N>
  BERTH_ARM_INLINE static void run(Bytes from, std::uint8_t* to) noexcept {
    V8 x[N];
    V8 at[N];
    V8 out[N];
    uint8x16x2_t part[4];
    BERTH_EACH(4) part[i] = {vld1q_u8(kTable.codes + i * 32), vld1q_u8(kTable.codes + i * 32 + 16)};
    load(from, x);
    // Of 128 the code is that of 127, in both formats.
    BERTH_EACH(N) at[i] = kFloat ? vandq_u8(x[i], vdupq_n_u8(0x7f)) : vreinterpretq_u8_s8(vqabsq_s8(vreinterpretq_s8_u8(x[i])));
    BERTH_EACH(N) out[i] = vqtbl2q_u8(part[0], at[i]);  // past the 32 is 0
    for (std::size_t k = 1; k < 4; ++k) {
      V8 more[N];
      BERTH_EACH(N) more[i] = vsubq_u8(at[i], vdupq_n_u8(static_cast<std::uint8_t>(32 * k)));
      BERTH_EACH(N) more[i] = vqtbl2q_u8(part[k], more[i]);
      BERTH_EACH(N) out[i] = vorrq_u8(out[i], more[i]);
    }
    BERTH_EACH(N) out[i] = with_signs(out[i], x[i]);
    store(out, to);
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

template <class Source, class Target, class Lanes>
constexpr ConvertRow through = cast_row<Through<Source, Target, Lanes>>;

}  // namespace

Kernels with_arm_casts(const Kernels& kernels) noexcept {
  using enum DType;
  using I8 = ByteSource<true>;
  using U8 = ByteSource<false>;
  using ToI8 = ByteTarget<true>;
  using ToU8 = ByteTarget<false>;
  using ToE4m3 = Float8Target<float8_e4m3>;
  using ToE5m2 = Float8Target<float8_e5m2>;
  Kernels out = kernels;
  out.name = "NEON by hand";
  const auto set = [&out](DType from, DType to, ConvertRow row, Rounding rounding = Rounding::nearest) {
    out.casts[cast_index({from, to, rounding})] = row;
  };
  set(f8e4m3, f32, through<E4m3Source, F32Target, F32>);
  set(f32, f8e4m3, through<F32Source, ToE4m3, F32>);
  set(f32, f8e5m2, through<F32Source, ToE5m2, F32>);
  set(f32, i8, through<F32Source, ToI8, F32>);
  set(f32, u8, through<F32Source, ToU8, F32>);
  set(i64, f32, cast_row<I64ToF32<Rounding::nearest>>);
  set(i64, f32, cast_row<I64ToF32<Rounding::odd>>, Rounding::odd);
  set(i32, f32, cast_row<I32ToOddF32>, Rounding::odd);
  set(boolean, f8e4m3, cast_row<BoolToFloat8<float8_e4m3>>);
  set(boolean, f8e5m2, cast_row<BoolToFloat8<float8_e5m2>>);
  set(i8, f8e4m3, cast_row<ByTable<std::int8_t, float8_e4m3>>);
  set(i8, f8e5m2, cast_row<ByTable<std::int8_t, float8_e5m2>>);
  set(f8e4m3, f8e5m2, cast_row<ByTable<float8_e4m3, float8_e5m2>>);
  set(f8e5m2, f8e4m3, cast_row<ByTable<float8_e5m2, float8_e4m3>>);
  set(bf16, f8e4m3, through<Bf16Source, ToE4m3, F32>);
  set(bf16, f8e5m2, through<Bf16Source, ToE5m2, F32>);
  set(bf16, i8, through<Bf16Source, ToI8, F32>);
  set(bf16, u8, through<Bf16Source, ToU8, F32>);
  set(i8, bf16, through<I8, ExactBf16Target, F32>);
  set(u8, bf16, through<U8, ExactBf16Target, F32>);
  set(f8e4m3, bf16, through<E4m3Source, ExactBf16Target, F32>);
  if (os::cpu_rounds_to_bf16()) set(f32, bf16, through<F32Source, Bf16Target, F32>);
  if (!os::cpu_computes_in_f16()) return out;
  set(i8, f16, through<I8, F16Target, V16>);
  set(u8, f16, through<U8, F16Target, V16>);
  set(f8e4m3, f16, through<E4m3Source, F16Target, V16>);
  set(f8e5m2, f16, through<E5m2Source, F16Target, V16>);
  set(f16, i8, through<F16Source, ToI8, V16>);
  set(f16, u8, through<F16Source, ToU8, V16>);
  set(f16, f8e4m3, through<F16Source, ToE4m3, V16>);
  set(f16, f8e5m2, through<F16Source, ToE5m2, V16>);
  set(u8, f8e4m3, through<U8, ToE4m3, V16>);
  set(u8, f8e5m2, through<U8, ToE5m2, V16>);
  set(f8e4m3, i8, through<E4m3Source, ToI8, V16>);
  set(f8e4m3, u8, through<E4m3Source, ToU8, V16>);
  set(f8e5m2, i8, through<E5m2Source, ToI8, V16>);
  set(f8e5m2, u8, through<E5m2Source, ToU8, V16>);
  return out;
}

}  // namespace berth

#else

namespace berth {

Kernels with_arm_casts(const Kernels& kernels) noexcept { return kernels; }

}  // namespace berth

#endif
