// SPDX-License-Identifier: Apache-2.0
#include "copy/kernels/arm_casts.h"

#if defined(__aarch64__)

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "berth/base/float_types.h"
#include "copy/kernels/arm_sources.h"
#include "copy/kernels/arm_targets.h"
#include "copy/kernels/byte_table.h"
#include "os/system.h"

namespace berth::internal::copy {

namespace arm {
namespace {

// A cast is a source, a target, and the type of the registers between them: F32 or V16 (f16).
template <class Source, class Target, class Lanes>
struct Through {
  static constexpr std::size_t kFrom = Source::kBytes, kTo = Target::kBytes;
  static constexpr std::size_t kBlocks = std::min(Source::kBlocks, Target::kBlocks);
  template <std::size_t N>
  BERTH_ARM_INLINE static void run(Bytes from, std::uint8_t* to) noexcept {
    Lanes x[N * (std::is_same_v<Lanes, F32> ? 4 : 2)];
    Source::template read<N>(from, x);
    Target::template write<N>(x, to);
  }
};

// Writes 0 or 1, in the encoding of To.
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

// Integers, without going through wider floats: normalised by a left shift, and rounded to nearest even where
// the mantissa ends. The shift count gives the exponent.
template <class To>
struct U8ToFloat8 {
  static constexpr std::size_t kFrom = 1, kTo = 1, kBlocks = 4;
  static constexpr int kMantissaBits = Float8Target<To>::kMantissaBits;
  static constexpr int kLost = 7 - kMantissaBits;
  template <std::size_t N>
  BERTH_ARM_INLINE static void run(Bytes from, std::uint8_t* to) noexcept {
    constexpr std::uint8_t kOf128 = To(128.0).bits;
    constexpr std::uint8_t kFirstBit = 1 << kMantissaBits;  // implicit: not stored
    V8 x[N];
    V8 shift[N];
    V8 out[N];
    V8 even[N];
    load(from, x);
    BERTH_EACH(N) shift[i] = vclzq_u8(x[i]);
    BERTH_EACH(N) out[i] = vshlq_u8(x[i], vreinterpretq_s8_u8(shift[i]));
    BERTH_EACH(N) even[i] = vshlq_n_u8(out[i], 7 - kLost);  // the last kept bit, moved to the top
    BERTH_EACH(N) out[i] = vsubq_u8(out[i], vdupq_n_u8(1));
    BERTH_EACH(N) out[i] = vsraq_n_u8(out[i], even[i], 7);
    BERTH_EACH(N) out[i] = vrshrq_n_u8(out[i], kLost);
    BERTH_EACH(N) shift[i] = vshlq_n_u8(shift[i], kMantissaBits);
    BERTH_EACH(N) shift[i] = vsubq_u8(vdupq_n_u8(kOf128 - kFirstBit), shift[i]);
    BERTH_EACH(N) out[i] = vaddq_u8(out[i], shift[i]);
    BERTH_EACH(N) out[i] = vandq_u8(out[i], vtstq_u8(x[i], x[i]));
    store(out, to);
  }
};

// Converts codes by a lookup of their 128 magnitudes, for sources whose sign carries over unchanged: From is an
// 8-bit float, or i8.
template <DType From, DType To>
struct ByTable {
  static constexpr std::size_t kFrom = 1, kTo = 1, kBlocks = 2;
  static constexpr bool kFloat = From != DType::i8;

  template <std::size_t N>
  BERTH_ARM_INLINE static void run(Bytes from, std::uint8_t* to) noexcept {
    const std::uint8_t* const codes = kByteTable<From, To>.to;
    const uint8x16x4_t low = vld1q_u8_x4(codes);
    const uint8x16x4_t high = vld1q_u8_x4(codes + 64);
    V8 x[N];
    V8 at[N];
    V8 out[N];
    load(from, x);
    // 128 and 127 have the same code in both formats, so saturating is exact.
    BERTH_EACH(N) at[i] = kFloat ? vandq_u8(x[i], vdupq_n_u8(0x7f)) : vreinterpretq_u8_s8(vqabsq_s8(vreinterpretq_s8_u8(x[i])));
    BERTH_EACH(N) out[i] = vqtbl4q_u8(low, at[i]);  // 0 for indices past 64
    BERTH_EACH(N) at[i] = vqtbl4q_u8(high, veorq_u8(at[i], vdupq_n_u8(64)));
    BERTH_EACH(N) out[i] = vorrq_u8(out[i], at[i]);
    BERTH_EACH(N) out[i] = with_signs(out[i], x[i]);
    store(out, to);
  }
};

// Walks the elements in the order of cast_row in simd.cc.
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

using I8 = ByteSource<DType::i8>;
using U8 = ByteSource<DType::u8>;
using Bool = ByteSource<DType::boolean>;
using I64 = I64Source<Rounding::odd>;
using ToI8 = ByteTarget<true>;
using ToU8 = ByteTarget<false>;
using ToE4m3 = Float8Target<float8_e4m3>;
using ToE5m2 = Float8Target<float8_e5m2>;

// Enters a cast into the table of the kernels, in place of the one that is there.
struct Enter {
  Kernels& kernels;

  void operator()(DType from, DType to, ConvertRow row, Rounding rounding = Rounding::nearest) const noexcept {
    kernels.casts[cast_index({from, to, rounding})] = row;
  }
};

// Casts in the instructions that every ARM64 processor has.
void enter_base_casts(const Enter& set) noexcept {
  using enum DType;
  set(f8e4m3, f32, through<E4m3Source, F32Target, F32>);
  set(f32, f8e4m3, through<F32Source, ToE4m3, F32>);
  set(f32, f8e5m2, through<F32Source, ToE5m2, F32>);
  set(f32, i8, through<F32Source, ToI8, F32>);
  set(f32, u8, through<F32Source, ToU8, F32>);
  set(i64, f32, through<I64Source<Rounding::nearest>, F32Target, F32>);
  set(i64, f32, through<I64, F32Target, F32>, Rounding::odd);
  set(i64, f16, through<I64, F16Target, F32>);
  set(i64, f8e4m3, through<I64, ToE4m3, F32>);
  set(i64, f8e5m2, through<I64, ToE5m2, F32>);
  set(i32, f32, through<I32Source, F32Target, F32>, Rounding::odd);
  set(i32, f16, through<I32Source, F16Target, F32>);
  set(i32, f8e4m3, through<I32Source, ToE4m3, F32>);
  set(i32, f8e5m2, through<I32Source, ToE5m2, F32>);
  set(f64, f16, through<F64Source, F16Target, F32>);
  set(f64, f8e4m3, through<F64Source, ToE4m3, F32>);
  set(f64, f8e5m2, through<F64Source, ToE5m2, F32>);
  set(f64, i8, through<F64Source, ToI8, F32>);
  set(f64, u8, through<F64Source, ToU8, F32>);
  set(boolean, f8e4m3, cast_row<BoolToFloat8<float8_e4m3>>);
  set(boolean, f8e5m2, cast_row<BoolToFloat8<float8_e5m2>>);
  set(u8, f8e4m3, cast_row<U8ToFloat8<float8_e4m3>>);
  set(u8, f8e5m2, cast_row<U8ToFloat8<float8_e5m2>>);
  set(i8, f8e4m3, cast_row<ByTable<i8, f8e4m3>>);
  set(i8, f8e5m2, cast_row<ByTable<i8, f8e5m2>>);
  set(f8e4m3, f8e5m2, cast_row<ByTable<f8e4m3, f8e5m2>>);
  set(f8e5m2, f8e4m3, cast_row<ByTable<f8e5m2, f8e4m3>>);
  set(boolean, bf16, through<Bool, ExactBf16Target, F32>);
  set(bf16, f16, through<Bf16Source, F16Target, F32>);
  set(bf16, i32, through<Bf16Source, I32Target, F32>);
  set(f16, i32, through<F16Source, I32Target, F32>);
  set(f8e4m3, i32, through<E4m3Source, I32Target, F32>);
  set(f8e5m2, i32, through<E5m2Source, I32Target, F32>);
  set(f8e5m2, bf16, through<E5m2Source, ExactBf16Target, F32>);
  set(bf16, f8e4m3, through<Bf16Source, ToE4m3, F32>);
  set(bf16, f8e5m2, through<Bf16Source, ToE5m2, F32>);
  set(bf16, i8, through<Bf16Source, ToI8, F32>);
  set(bf16, u8, through<Bf16Source, ToU8, F32>);
  set(i8, bf16, through<I8, ExactBf16Target, F32>);
  set(u8, bf16, through<U8, ExactBf16Target, F32>);
  set(f8e4m3, bf16, through<E4m3Source, ExactBf16Target, F32>);
}

// Casts with BFCVTN. REQUIRES: os::cpu_rounds_to_bf16().
void enter_bf16_casts(const Enter& set) noexcept {
  using enum DType;
  set(f32, bf16, through<F32Source, Bf16Target, F32>);
  set(f16, bf16, through<F16Source, Bf16Target, F32>);
  set(f64, bf16, through<F64Source, Bf16Target, F32>);
  set(i32, bf16, through<I32Source, Bf16Target, F32>);
  set(i64, bf16, through<I64, Bf16Target, F32>);
}

// Casts in f16 arithmetic; some replace one of the base casts. REQUIRES: os::cpu_computes_in_f16().
void enter_f16_casts(const Enter& set) noexcept {
  using enum DType;
  set(boolean, f16, through<Bool, F16Target, V16>);
  set(i8, f16, through<I8, F16Target, V16>);
  set(u8, f16, through<U8, F16Target, V16>);
  set(f8e4m3, f16, through<E4m3Source, F16Target, V16>);
  set(f8e5m2, f16, through<E5m2Source, F16Target, V16>);
  set(f16, i8, through<F16Source, ToI8, V16>);
  set(f16, u8, through<F16Source, ToU8, V16>);
  set(f16, f8e4m3, through<F16Source, ToE4m3, V16>);
  set(f16, f8e5m2, through<F16Source, ToE5m2, V16>);
  set(bf16, f8e5m2, through<Bf16Source, ToE5m2, V16>);
  set(f8e4m3, i8, through<E4m3Source, ToI8, V16>);
  set(f8e4m3, u8, through<E4m3Source, ToU8, V16>);
  set(f8e5m2, i8, through<E5m2Source, ToI8, V16>);
  set(f8e5m2, u8, through<E5m2Source, ToU8, V16>);
}

}  // namespace
}  // namespace arm

Kernels with_arm_casts(const Kernels& kernels) noexcept {
  Kernels out = kernels;
  out.name = "NEON by hand";
  arm::enter_base_casts({out});
  if (os::cpu_rounds_to_bf16()) arm::enter_bf16_casts({out});
  if (os::cpu_computes_in_f16()) arm::enter_f16_casts({out});
  return out;
}

}  // namespace berth::internal::copy

#else

namespace berth::internal::copy {

Kernels with_arm_casts(const Kernels& kernels) noexcept { return kernels; }

}  // namespace berth::internal::copy

#endif
