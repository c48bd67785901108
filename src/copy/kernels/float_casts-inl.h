// SPDX-License-Identifier: Apache-2.0
// SIMD casts between f32 and smaller floating-point formats. Highway 1.0 truncates to bf16; these round to
// nearest even.
#if defined(BERTH_COPY_KERNELS_FLOAT_CASTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BERTH_COPY_KERNELS_FLOAT_CASTS_INL_H_
#undef BERTH_COPY_KERNELS_FLOAT_CASTS_INL_H_
#else
#define BERTH_COPY_KERNELS_FLOAT_CASTS_INL_H_
#endif

#include <bit>

#include "copy/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace berth::internal::copy::HWY_NAMESPACE {

template <class F>
struct Format {
  static constexpr int kMantissaBits = F::kMantissa == 0x3ff ? 10 : F::kMantissa == 0x7 ? 3 : 2;
  // Of a normal value, as in f32.
  static constexpr std::uint32_t kLeastExponent = static_cast<std::uint32_t>(128 - F::kBias) << 23;
  static constexpr bool kHasInfinity = (F::kLargest & F::kMantissa) == F::kMantissa;
  // The smallest magnitude that is encoded as infinity, or as NaN in a format without infinity, in bits of f32.
  static constexpr std::uint32_t kBeyond =
      kHasInfinity ? static_cast<std::uint32_t>(127 + F::kBias + 1) << 23 : 0x43f00000U;  // 2^(bias+1), or 480
};

// The code of |x|. Adding a power of two 23 bits above the last kept bit makes the processor round at that bit;
// the sum's low bits then hold the mantissa. Below the smallest normal exponent the bit position stays fixed,
// which gives subnormals.
template <class F>
HWY_INLINE V32 encode_magnitude(V32 x) {
  const D32 d;
  const V32 magnitude = hn::And(x, hn::Set(d, 0x7fffffffU));
  // Also bounds NaN, whose bits are larger than all others.
  const V32 bounded = hn::Min(magnitude, hn::Set(d, Format<F>::kBeyond));
  const V32 exponent = hn::Max(hn::And(bounded, hn::Set(d, 0x7f800000U)), hn::Set(d, Format<F>::kLeastExponent));
  const V32 place = hn::Add(exponent, hn::Set(d, static_cast<std::uint32_t>(23 - Format<F>::kMantissaBits) << 23));
  const V32 sum = hn::BitCast(d, hn::Add(hn::BitCast(F32(), bounded), hn::BitCast(F32(), place)));
  const V32 steps = hn::ShiftRight<23 - Format<F>::kMantissaBits>(hn::Sub(exponent, hn::Set(d, Format<F>::kLeastExponent)));
  const V32 code = hn::Add(hn::Sub(sum, place), steps);
  if constexpr (!Format<F>::kHasInfinity) return code;
  // A quiet NaN with the top bits of its payload.
  constexpr std::uint32_t kQuiet = F::kExponent | (1U << (Format<F>::kMantissaBits - 1));
  const V32 payload = hn::And(hn::ShiftRight<23 - Format<F>::kMantissaBits>(magnitude), hn::Set(d, std::uint32_t{F::kMantissa}));
  return hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, 0x7f800000U)), hn::Or(payload, hn::Set(d, kQuiet)), code);
}

// A code as f32.
template <class F>
HWY_INLINE VF32 decode(V32 code) {
  const D32 d;
  const V32 magnitude = hn::And(code, hn::Set(d, std::uint32_t{F::kSign} - 1));
  const V32 raised = hn::ShiftLeft<23 - Format<F>::kMantissaBits>(magnitude);
  const V32 normal = hn::Add(raised, hn::Set(d, static_cast<std::uint32_t>(127 - F::kBias) << 23));
  // A subnormal is its mantissa times the smallest value.
  constexpr auto kUnit = static_cast<std::uint32_t>(128 - F::kBias - Format<F>::kMantissaBits) << 23;
  const VF32 units = hn::ConvertTo(F32(), hn::BitCast(I32(), magnitude));
  const V32 subnormal = hn::BitCast(d, hn::Mul(units, hn::BitCast(F32(), hn::Set(d, kUnit))));
  V32 value = hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 1U << Format<F>::kMantissaBits)), subnormal, normal);
  if constexpr (Format<F>::kHasInfinity) {
    const V32 top = hn::Or(raised, hn::Set(d, 0x7f800000U));  // infinity, or NaN with its payload
    value = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, std::uint32_t{F::kExponent} - 1)), top, value);
    value = hn::Or(value, hn::IfThenElseZero(hn::Gt(magnitude, hn::Set(d, std::uint32_t{F::kExponent})), hn::Set(d, 0x400000U)));
  } else {
    value = hn::IfThenElse(hn::Eq(magnitude, hn::Set(d, std::uint32_t{F::kExponent | F::kMantissa})), hn::Set(d, 0x7fc00000U), value);
  }
  const V32 sign = hn::And(hn::ShiftLeft < sizeof(F) == 1 ? 24 : 16 > (code), hn::Set(d, 0x80000000U));
  return hn::BitCast(F32(), hn::Or(value, sign));
}

// Whether the processor has an instruction that converts f16.
constexpr bool kHasHalf = HWY_TARGET == HWY_NEON || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL;
using Half = hn::Rebind<hwy::float16_t, F32>;

HWY_INLINE VF32 f16_lower(V16 h) {
  if constexpr (kHasHalf) return hn::PromoteTo(F32(), hn::BitCast(Half(), hn::LowerHalf(h)));
  return decode<float16>(widen_lower(D32(), h));
}
HWY_INLINE VF32 f16_upper(V16 h) {
  if constexpr (kHasHalf) return hn::PromoteTo(F32(), hn::BitCast(Half(), hn::UpperHalf(hn::Half<D16>(), h)));
  return decode<float16>(widen_upper(D32(), h));
}

template <>
struct Op<DType::f16, DType::f32, Rounding::nearest> {
  HWY_INLINE void operator()(const std::uint8_t* from, std::uint8_t* to) const {
    for (std::size_t i = 0; i < 2; ++i) {
      const V16 h = get(D16(), from, i);
      put(f16_lower(h), to, 2 * i);
      put(f16_upper(h), to, 2 * i + 1);
    }
  }
};

template <>
struct Op<DType::f32, DType::f16, Rounding::nearest> {
  HWY_INLINE void operator()(const std::uint8_t* from, std::uint8_t* to) const {
    for (std::size_t i = 0; i < 2; ++i) {
      const V32 a = get(D32(), from, 2 * i);
      const V32 b = get(D32(), from, 2 * i + 1);
      if constexpr (kHasHalf) {
        using Bits = hn::Half<D16>;
        const auto low = hn::BitCast(Bits(), hn::DemoteTo(Half(), hn::BitCast(F32(), a)));
        const auto high = hn::BitCast(Bits(), hn::DemoteTo(Half(), hn::BitCast(F32(), b)));
        put(hn::Combine(D16(), high, low), to, i);
      } else {
        const V16 sign = hn::And(high_halves(a, b), hn::Set(D16(), std::uint16_t{0x8000}));
        put(hn::Or(low_halves(encode_magnitude<float16>(a), encode_magnitude<float16>(b)), sign), to, i);
      }
    }
  }
};

// Adding minus zero changes no value, but makes a NaN quiet. Compilers would remove the addition, so the
// constant is hidden from them.
inline float hidden_minus_zero() {
  std::uint32_t bits = 0x80000000U;
  asm("" : "+r"(bits));
  return std::bit_cast<float>(bits);
}

template <>
struct Op<DType::bf16, DType::f32, Rounding::nearest> {
  HWY_INLINE void operator()(const std::uint8_t* from, std::uint8_t* to) const {
    const auto quiet = [&](V32 v) HWY_ATTR { return hn::Add(hn::BitCast(F32(), v), hn::Set(F32(), minus_zero)); };
    for (std::size_t i = 0; i < 2; ++i) {
      const V16 h = get(D16(), from, i);
      put(quiet(raise_lower(h)), to, 2 * i);
      put(quiet(raise_upper(h)), to, 2 * i + 1);
    }
  }
  const float minus_zero = hidden_minus_zero();
};

// Lanes with all bits set where an element is not NaN. (By equality: Highway's inequality differs between
// targets for NaN.)
HWY_INLINE V32 is_number(V32 v) {
  const VF32 x = hn::BitCast(F32(), v);
  return hn::BitCast(D32(), hn::VecFromMask(F32(), hn::Eq(x, x)));
}

template <>
struct Op<DType::f32, DType::bf16, Rounding::nearest> {
  HWY_INLINE void operator()(const std::uint8_t* from, std::uint8_t* to) const {
    const D16 d;
    const V16 one = hn::Set(d, std::uint16_t{1});
    for (std::size_t i = 0; i < 2; ++i) {
      const V32 a = get(D32(), from, 2 * i);
      const V32 b = get(D32(), from, 2 * i + 1);
      const V16 high = high_halves(a, b);
      const V16 low = low_halves(a, b);
      // Rounds up if the lost bits are more than half, or exactly half and the last kept bit is 1.
      const V16 most = hn::Sub(hn::Set(d, std::uint16_t{0x8000}), hn::And(high, one));
      const V16 rounded = hn::Sub(high, hn::VecFromMask(d, hn::Gt(low, most)));
      const V16 number = low_halves(is_number(a), is_number(b));
      put(hn::IfVecThenElse(number, rounded, hn::Or(high, hn::Set(d, std::uint16_t{0x40}))), to, i);
    }
  }
};

// As encode_magnitude, with the exponents handled in 16-bit lanes, from the high halves of the elements. The
// sign takes part in the sum, which stays in its binade because of the factor 1.5, and an absolute value
// removes it. Magnitudes past the format's largest, infinities and NaN have exponents that give a code past the
// largest, whatever the sum is.
template <class F>
HWY_INLINE V16 encode_magnitude_16(V32 a, V32 b, V16 high) {
  const D16 d;
  constexpr int kMantissaBits = Format<F>::kMantissaBits;
  constexpr auto kLeast = static_cast<std::uint16_t>(Format<F>::kLeastExponent >> 16);
  const V16 exponent = hn::SaturatedSub(hn::And(high, hn::Set(d, std::uint16_t{0x7f80})), hn::Set(d, kLeast));
  const V16 place = hn::Add(exponent, hn::Set(d, static_cast<std::uint16_t>(kLeast + ((23 - kMantissaBits) << 7 | 0x40))));
  const VF32 sum_a = hn::Add(hn::BitCast(F32(), a), hn::BitCast(F32(), raise_lower(place)));
  const VF32 sum_b = hn::Add(hn::BitCast(F32(), b), hn::BitCast(F32(), raise_upper(place)));
  const V16 low = low_halves(hn::BitCast(D32(), sum_a), hn::BitCast(D32(), sum_b));
  const V16 mantissa = hn::BitCast(d, hn::Abs(hn::BitCast(I16(), low)));
  return hn::Min(hn::Add(hn::ShiftRight<7 - kMantissaBits>(exponent), mantissa), hn::Set(d, std::uint16_t{F::kLargest + 1}));
}

// Combines codes without signs with the signs of other bytes.
HWY_INLINE V8 with_signs(V8 code, V8 top_bytes) { return hn::Or(code, hn::And(top_bytes, hn::Set(D8(), std::uint8_t{0x80}))); }

template <class F>
HWY_INLINE V8 encode_float8(const V32 (&x)[4]) {
  const V16 high_ab = high_halves(x[0], x[1]);
  const V16 high_cd = high_halves(x[2], x[3]);
  V8 code = low_halves(encode_magnitude_16<F>(x[0], x[1], high_ab), encode_magnitude_16<F>(x[2], x[3], high_cd));
  if constexpr (Format<F>::kHasInfinity) {  // otherwise everything past the largest is the single NaN
    static_assert(Format<F>::kMantissaBits == 2);
    const V32 numbers = hn::And(hn::And(is_number(x[0]), is_number(x[1])), hn::And(is_number(x[2]), is_number(x[3])));
    if (!hn::AllTrue(D32(), hn::MaskFromVec(numbers))) {
      // A quiet NaN with the one payload bit that fits.
      const V8 payload = low_halves(hn::ShiftRight<5>(high_ab), hn::ShiftRight<5>(high_cd));
      const V8 quiet = hn::Or(hn::And(payload, hn::Set(D8(), std::uint8_t{1})), hn::Set(D8(), std::uint8_t{0x7e}));
      code = hn::IfVecThenElse(low_bytes(is_number(x[0]), is_number(x[1]), is_number(x[2]), is_number(x[3])), code, quiet);
    }
  }
  return with_signs(code, high_halves(high_ab, high_cd));
}

// A code of f8e4m3, shifted to the exponent field of a wider format, is a value of that format except for the
// bias, subnormals included; multiplying by a power of two corrects the bias exactly. NaN, whose code would be
// a number in other formats, is replaced first. The wider format is f32 where f32 subnormals cost nothing, and
// f16 where they are slow but f16 has instructions.
HWY_INLINE void decode_e4m3_as_f32(V8 codes, std::uint8_t* to) {
  const D8 d;
  const V8 nan = hn::VecFromMask(d, hn::Eq(hn::And(codes, hn::Set(d, std::uint8_t{0x7f})), hn::Set(d, std::uint8_t{0x7f})));
  // The two high bytes of the f32, before the multiplication: s0000eee emmm0000; for NaN s1111111 11000000.
  const V8 top = hn::BitCast(d, hn::ShiftRight<4>(hn::BitCast(I8(), codes)));
  const V8 high = hn::Xor(hn::And(top, hn::Set(d, std::uint8_t{0x87})), hn::And(nan, hn::Set(d, std::uint8_t{0x78})));
  const V8 low = hn::Xor(hn::ShiftLeft<4>(codes), hn::And(nan, hn::Set(d, std::uint8_t{0x30})));
  const V16 first = hn::BitCast(D16(), hn::InterleaveLower(d, low, high));
  const V16 second = hn::BitCast(D16(), hn::InterleaveUpper(d, low, high));
  const VF32 scale = hn::Set(F32(), 0x1p120F);
  put(hn::Mul(hn::BitCast(F32(), raise_lower(first)), scale), to, 0);
  put(hn::Mul(hn::BitCast(F32(), raise_upper(first)), scale), to, 1);
  put(hn::Mul(hn::BitCast(F32(), raise_lower(second)), scale), to, 2);
  put(hn::Mul(hn::BitCast(F32(), raise_upper(second)), scale), to, 3);
}

HWY_INLINE void decode_e4m3_as_f16(hn::Vec<I16> codes, std::uint8_t* to, std::size_t i) {
  const D16 d;
  const V16 half = hn::And(hn::BitCast(d, hn::ShiftLeft<7>(codes)), hn::Set(d, std::uint16_t{0xbf80}));
  const auto nan = hn::Eq(hn::And(half, hn::Set(d, std::uint16_t{0x3f80})), hn::Set(d, std::uint16_t{0x3f80}));
  const V16 fixed = hn::Add(half, hn::IfThenElseZero(nan, hn::Set(d, std::uint16_t{0x7e00 - 0x3f80})));
  const VF32 scale = hn::Set(F32(), 256.0F);
  put(hn::Mul(hn::PromoteTo(F32(), hn::BitCast(Half(), hn::LowerHalf(fixed))), scale), to, i);
  put(hn::Mul(hn::PromoteTo(F32(), hn::BitCast(Half(), hn::UpperHalf(hn::Half<D16>(), fixed))), scale), to, i + 1);
}

template <>
struct Op<DType::f8e4m3, DType::f32, Rounding::nearest> {
  HWY_INLINE void operator()(const std::uint8_t* from, std::uint8_t* to) const {
    const V8 codes = get(D8(), from, 0);
    if constexpr (HWY_ARCH_ARM) {
      decode_e4m3_as_f32(codes, to);
    } else if constexpr (kHasHalf) {
      decode_e4m3_as_f16(widen_lower(I16(), hn::BitCast(I8(), codes)), to, 0);
      decode_e4m3_as_f16(widen_upper(I16(), hn::BitCast(I8(), codes)), to, 2);
    } else {
      const V16 low = widen_lower(D16(), codes);
      const V16 high = widen_upper(D16(), codes);
      put(decode<float8_e4m3>(widen_lower(D32(), low)), to, 0);
      put(decode<float8_e4m3>(widen_upper(D32(), low)), to, 1);
      put(decode<float8_e4m3>(widen_lower(D32(), high)), to, 2);
      put(decode<float8_e4m3>(widen_upper(D32(), high)), to, 3);
    }
  }
};

template <>
struct Op<DType::f8e5m2, DType::f32, Rounding::nearest> {
  HWY_INLINE void operator()(const std::uint8_t* from, std::uint8_t* to) const {
    const V8 codes = get(D8(), from, 0);
    if constexpr (kHasHalf) {  // a code is the top byte of an f16
      std::size_t i = 0;
      for (const V16 wide : {widen_lower(D16(), codes), widen_upper(D16(), codes)}) {
        const V16 half = hn::ShiftLeft<8>(wide);
        put(hn::PromoteTo(F32(), hn::BitCast(Half(), hn::LowerHalf(half))), to, i++);
        put(hn::PromoteTo(F32(), hn::BitCast(Half(), hn::UpperHalf(hn::Half<D16>(), half))), to, i++);
      }
    } else {
      std::size_t i = 0;
      for (const V16 wide : {widen_lower(D16(), codes), widen_upper(D16(), codes)}) {
        put(decode<float8_e5m2>(widen_lower(D32(), wide)), to, i++);
        put(decode<float8_e5m2>(widen_upper(D32(), wide)), to, i++);
      }
    }
  }
};

}  // namespace berth::internal::copy::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target guard
