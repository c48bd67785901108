// SPDX-License-Identifier: Apache-2.0
// SIMD casts between integers, f32, f64 and bool.
#if defined(BERTH_COPY_KERNELS_NUMBER_CASTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BERTH_COPY_KERNELS_NUMBER_CASTS_INL_H_
#undef BERTH_COPY_KERNELS_NUMBER_CASTS_INL_H_
#else
#define BERTH_COPY_KERNELS_NUMBER_CASTS_INL_H_
#endif

#include <limits>

#include "copy/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace berth::internal::copy::HWY_NAMESPACE {

// Rounds toward zero and saturates; NaN becomes 0. ARM64 has an instruction that does this.
HWY_INLINE VI32 truncate(VF32 v) {
  if constexpr (HWY_ARCH_ARM) return hn::ConvertTo(I32(), v);
  const VI32 fits = hn::ConvertTo(I32(), hn::IfThenElseZero(hn::Eq(v, v), hn::Max(v, hn::Set(F32(), -0x1p31F))));
  const auto beyond = hn::RebindMask(I32(), hn::Ge(v, hn::Set(F32(), 0x1p31F)));
  return hn::IfThenElse(beyond, hn::Set(I32(), INT32_MAX), fits);
}

HWY_INLINE VI64 truncate(VF64 v) {
  if constexpr (HWY_ARCH_ARM) return hn::ConvertTo(I64(), v);
  const VI64 fits = hn::ConvertTo(I64(), hn::IfThenElseZero(hn::Eq(v, v), hn::Max(v, hn::Set(F64(), -0x1p63))));
  const auto beyond = hn::RebindMask(I64(), hn::Ge(v, hn::Set(F64(), 0x1p63)));
  return hn::IfThenElse(beyond, hn::Set(I64(), INT64_MAX), fits);
}

// The same to 8 bits. Short vectors are narrowed twice with saturation. Where narrowing two vectors would
// reorder their elements, the values are clamped first, so that only the high bits have to be dropped.
template <class Byte>
HWY_INLINE V8 truncate_to_bytes(const V32 (&x)[4]) {
  using D = hn::Rebind<Byte, D8>;
  const auto floats = [&](std::size_t i) HWY_ATTR { return hn::BitCast(F32(), x[i]); };
  if constexpr (kBlock == 16) {
    const auto low = hn::DemoteTo(hn::Half<D>(), hn::ReorderDemote2To(I16(), truncate(floats(0)), truncate(floats(1))));
    const auto high = hn::DemoteTo(hn::Half<D>(), hn::ReorderDemote2To(I16(), truncate(floats(2)), truncate(floats(3))));
    return hn::BitCast(D8(), hn::Combine(D(), high, low));
  } else {
    const auto part = [&](std::size_t i) HWY_ATTR {
      const VF32 v = floats(i);
      const VF32 fits =
          hn::Min(hn::Max(v, hn::Set(F32(), std::numeric_limits<Byte>::lowest())), hn::Set(F32(), std::numeric_limits<Byte>::max()));
      return hn::BitCast(D32(), hn::ConvertTo(I32(), hn::IfThenElseZero(hn::Eq(v, v), fits)));
    };
    return low_bytes(part(0), part(1), part(2), part(3));
  }
}

// Widens bytes twice, and applies `last` to each vector of 32-bit lanes.
template <class Wide16, class Bytes, class Last>
HWY_INLINE void widen_bytes(Bytes v, std::uint8_t* to, Last last) {
  const auto low = widen_lower(Wide16(), v);
  const auto high = widen_upper(Wide16(), v);
  put(last(widen_lower(I32(), low)), to, 0);
  put(last(widen_upper(I32(), low)), to, 1);
  put(last(widen_lower(I32(), high)), to, 2);
  put(last(widen_upper(I32(), high)), to, 3);
}

template <>
struct Op<DType::i8, DType::i32, Rounding::nearest> {
  HWY_INLINE void operator()(const std::uint8_t* from, std::uint8_t* to) const {
    widen_bytes<I16>(get(I8(), from, 0), to, [](VI32 v) HWY_ATTR { return v; });
  }
};
template <>
struct Op<DType::u8, DType::i32, Rounding::nearest> {
  HWY_INLINE void operator()(const std::uint8_t* from, std::uint8_t* to) const {
    widen_bytes<D16>(get(D8(), from, 0), to, [](VI32 v) HWY_ATTR { return v; });
  }
};
// 2^23 + n has n in its low bits. So a byte becomes a float by inserting it there and subtracting 2^23. This
// avoids the conversion instruction, of which processors run only one at a time.
HWY_INLINE void bytes_to_f32(V8 bytes, float bias, std::uint8_t* to) {
  const V8 zero = hn::Zero(D8());
  const V16 low = hn::BitCast(D16(), hn::InterleaveLower(D8(), bytes, zero));
  const V16 high = hn::BitCast(D16(), hn::InterleaveUpper(D8(), bytes, zero));
  const V16 exponent = hn::Set(D16(), std::uint16_t{0x4b00});
  const auto finish = [&](V16 pairs) HWY_ATTR { return hn::Sub(hn::BitCast(F32(), pairs), hn::Set(F32(), 0x1p23F + bias)); };
  put(finish(hn::InterleaveLower(D16(), low, exponent)), to, 0);
  put(finish(hn::InterleaveUpper(D16(), low, exponent)), to, 1);
  put(finish(hn::InterleaveLower(D16(), high, exponent)), to, 2);
  put(finish(hn::InterleaveUpper(D16(), high, exponent)), to, 3);
}

template <>
struct Op<DType::i8, DType::f32, Rounding::nearest> {
  HWY_INLINE void operator()(const std::uint8_t* from, std::uint8_t* to) const {
    if constexpr (kBlock == 16)
      bytes_to_f32(hn::Xor(get(D8(), from, 0), hn::Set(D8(), std::uint8_t{0x80})), 128, to);
    else
      widen_bytes<I16>(get(I8(), from, 0), to, [](VI32 v) HWY_ATTR { return hn::ConvertTo(F32(), v); });
  }
};
template <>
struct Op<DType::u8, DType::f32, Rounding::nearest> {
  HWY_INLINE void operator()(const std::uint8_t* from, std::uint8_t* to) const {
    if constexpr (kBlock == 16)
      bytes_to_f32(get(D8(), from, 0), 0, to);
    else
      widen_bytes<D16>(get(D8(), from, 0), to, [](VI32 v) HWY_ATTR { return hn::ConvertTo(F32(), v); });
  }
};

// Elements of the same width on both sides: each vector of a block by itself.
template <>
struct Op<DType::f32, DType::i32, Rounding::nearest> {
  HWY_INLINE void operator()(const std::uint8_t* from, std::uint8_t* to) const {
    for (std::size_t i = 0; i < 4; ++i) put(truncate(get(F32(), from, i)), to, i);
  }
};
template <>
struct Op<DType::i32, DType::f32, Rounding::nearest> {
  HWY_INLINE void operator()(const std::uint8_t* from, std::uint8_t* to) const {
    for (std::size_t i = 0; i < 4; ++i) put(hn::ConvertTo(F32(), get(I32(), from, i)), to, i);
  }
};
template <>
struct Op<DType::f64, DType::i64, Rounding::nearest> {
  HWY_INLINE void operator()(const std::uint8_t* from, std::uint8_t* to) const {
    for (std::size_t i = 0; i < 8; ++i) put(truncate(get(F64(), from, i)), to, i);
  }
};
template <>
struct Op<DType::i64, DType::f64, Rounding::nearest> {
  HWY_INLINE void operator()(const std::uint8_t* from, std::uint8_t* to) const {
    for (std::size_t i = 0; i < 8; ++i) put(hn::ConvertTo(F64(), get(I64(), from, i)), to, i);
  }
};

// Rounds large integers to odd at `Kept` bits, so that the conversion to a float is exact. In two's complement
// the dropped bits always count as positive, so this is right for both signs.
template <int Kept, class D>
HWY_INLINE hn::Vec<D> odd_integer(D d, hn::Vec<D> v) {
  using T = hn::TFromD<D>;
  constexpr int kLost = static_cast<int>(sizeof(T)) * 8 - 1 - Kept;
  constexpr T kMask = (T{1} << kLost) - 1;
  const auto lost = hn::And(v, hn::Set(d, kMask));
  const auto sticky = hn::And(hn::Add(lost, hn::Set(d, kMask)), hn::Set(d, T{1} << kLost));
  const auto odd = hn::Or(hn::AndNot(hn::Set(d, kMask), v), sticky);
  // Only past 2^Kept: smaller integers are exact.
  const auto small = hn::Eq(hn::ShiftRight<Kept>(v), hn::ShiftRight<Kept + kLost>(v));
  return hn::IfThenElse(small, v, odd);
}

template <>
struct Op<DType::f32, DType::f64, Rounding::nearest> {
  HWY_INLINE void operator()(const std::uint8_t* from, std::uint8_t* to) const {
    for (std::size_t i = 0; i < 4; ++i) {
      const VF32 v = get(F32(), from, i);
      put(widen_lower(F64(), v), to, 2 * i);
      put(widen_upper(F64(), v), to, 2 * i + 1);
    }
  }
};
template <>
struct Op<DType::i32, DType::f64, Rounding::nearest> {
  HWY_INLINE void operator()(const std::uint8_t* from, std::uint8_t* to) const {
    for (std::size_t i = 0; i < 4; ++i) {
      const VI32 v = get(I32(), from, i);
      put(widen_lower(F64(), v), to, 2 * i);
      put(widen_upper(F64(), v), to, 2 * i + 1);
    }
  }
};
template <>
struct Op<DType::i32, DType::i64, Rounding::nearest> {
  HWY_INLINE void operator()(const std::uint8_t* from, std::uint8_t* to) const {
    for (std::size_t i = 0; i < 4; ++i) {
      const VI32 v = get(I32(), from, i);
      put(widen_lower(I64(), v), to, 2 * i);
      put(widen_upper(I64(), v), to, 2 * i + 1);
    }
  }
};

HWY_INLINE VF32 narrow(VF64 a, VF64 b) {
  using Part = hn::Half<F32>;
  return hn::Combine(F32(), hn::DemoteTo(Part(), b), hn::DemoteTo(Part(), a));
}

template <>
struct Op<DType::f64, DType::f32, Rounding::nearest> {
  HWY_INLINE void operator()(const std::uint8_t* from, std::uint8_t* to) const {
    for (std::size_t i = 0; i < 4; ++i) put(narrow(get(F64(), from, 2 * i), get(F64(), from, 2 * i + 1)), to, i);
  }
};

// Rounding to odd and saturating narrowing: ARM64 has instructions for both.
#if HWY_ARCH_ARM_A64
HWY_INLINE VF32 narrow_to_odd(VF64 a, VF64 b) { return VF32(vcvtx_high_f32_f64(vcvtx_f32_f64(a.raw), b.raw)); }
HWY_INLINE VI32 truncate(VF64 a, VF64 b) { return VI32(vqmovn_high_s64(vqmovn_s64(truncate(a).raw), truncate(b).raw)); }
#else
// Masks of 64-bit lanes as one vector of 32-bit lanes: all bits or none.
template <class M>
HWY_INLINE V32 narrow_masks(M a, M b) {
  return low_halves(hn::BitCast(D64(), hn::VecFromMask(F64(), a)), hn::BitCast(D64(), hn::VecFromMask(F64(), b)));
}

// Rounds to nearest, then corrects: subtracts one unit where that rounded up, and sets the last bit where it
// was inexact.
HWY_INLINE VF32 narrow_to_odd(VF64 a, VF64 b) {
  const VF32 near = narrow(a, b);
  const VF64 back_a = widen_lower(F64(), near);
  const VF64 back_b = widen_upper(F64(), near);
  const V32 went_up = narrow_masks(hn::Gt(hn::Abs(back_a), hn::Abs(a)), hn::Gt(hn::Abs(back_b), hn::Abs(b)));
  const V32 went_down = narrow_masks(hn::Lt(hn::Abs(back_a), hn::Abs(a)), hn::Lt(hn::Abs(back_b), hn::Abs(b)));
  const V32 below = hn::Add(hn::BitCast(D32(), near), went_up);  // all bits are -1
  return hn::BitCast(F32(), hn::Or(below, hn::And(hn::Or(went_up, went_down), hn::Set(D32(), 1U))));
}

HWY_INLINE V64 truncate_to_i32(VF64 v) {
  const VF64 number = hn::IfThenElseZero(hn::Eq(v, v), v);
  const VF64 bounded = hn::Min(hn::Max(number, hn::Set(F64(), -0x1p31)), hn::Set(F64(), 0x1p31 - 1));
  return hn::BitCast(D64(), hn::ConvertTo(I64(), bounded));
}
HWY_INLINE VI32 truncate(VF64 a, VF64 b) { return hn::BitCast(I32(), low_halves(truncate_to_i32(a), truncate_to_i32(b))); }
#endif

template <>
struct Op<DType::f64, DType::f32, Rounding::odd> {
  HWY_INLINE void operator()(const std::uint8_t* from, std::uint8_t* to) const {
    for (std::size_t i = 0; i < 4; ++i) put(narrow_to_odd(get(F64(), from, 2 * i), get(F64(), from, 2 * i + 1)), to, i);
  }
};
template <>
struct Op<DType::i32, DType::f32, Rounding::odd> {
  HWY_INLINE void operator()(const std::uint8_t* from, std::uint8_t* to) const {
    for (std::size_t i = 0; i < 4; ++i) {
      const VI32 v = get(I32(), from, i);
      if constexpr (HWY_ARCH_ARM)
        put(narrow_to_odd(widen_lower(F64(), v), widen_upper(F64(), v)), to, i);
      else
        put(hn::ConvertTo(F32(), odd_integer<24>(I32(), v)), to, i);
    }
  }
};

// Through f64, rounded to odd.
HWY_INLINE VF64 odd_f64(const std::uint8_t* from, std::size_t i) {
  return hn::ConvertTo(F64(), odd_integer<53>(I64(), get(I64(), from, i)));
}
template <>
struct Op<DType::i64, DType::f32, Rounding::nearest> {
  HWY_INLINE void operator()(const std::uint8_t* from, std::uint8_t* to) const {
    for (std::size_t i = 0; i < 4; ++i) put(narrow(odd_f64(from, 2 * i), odd_f64(from, 2 * i + 1)), to, i);
  }
};
template <>
struct Op<DType::i64, DType::f32, Rounding::odd> {
  HWY_INLINE void operator()(const std::uint8_t* from, std::uint8_t* to) const {
    for (std::size_t i = 0; i < 4; ++i) put(narrow_to_odd(odd_f64(from, 2 * i), odd_f64(from, 2 * i + 1)), to, i);
  }
};

template <>
struct Op<DType::f64, DType::i32, Rounding::nearest> {
  HWY_INLINE void operator()(const std::uint8_t* from, std::uint8_t* to) const {
    for (std::size_t i = 0; i < 4; ++i) put(truncate(get(F64(), from, 2 * i), get(F64(), from, 2 * i + 1)), to, i);
  }
};

// Integers to narrower integers: keeps the low bits.
template <>
struct Op<DType::i64, DType::i32, Rounding::nearest> {
  HWY_INLINE void operator()(const std::uint8_t* from, std::uint8_t* to) const {
    for (std::size_t i = 0; i < 4; ++i) put(low_halves(get(D64(), from, 2 * i), get(D64(), from, 2 * i + 1)), to, i);
  }
};
template <>
struct Op<DType::i32, DType::u8, Rounding::nearest> {
  HWY_INLINE void operator()(const std::uint8_t* from, std::uint8_t* to) const {
    put(low_bytes(get(D32(), from, 0), get(D32(), from, 1), get(D32(), from, 2), get(D32(), from, 3)), to, 0);
  }
};

// Conversions to bool: 1 if an element is not zero, else 0. Lanes are set to all ones where it is zero,
// narrowed to bytes, inverted, and masked to one bit. Floats are compared as floats: both zeros are zero, and
// NaN is not.
template <class D>
HWY_INLINE auto is_zero(D d, const std::uint8_t* from, std::size_t i) {
  const hn::RebindToUnsigned<D> bits;
  return hn::BitCast(bits, hn::VecFromMask(d, hn::Eq(get(d, from, i), hn::Zero(d))));
}
HWY_INLINE void put_bools(V8 zero, std::uint8_t* to) { put(hn::AndNot(zero, hn::Set(D8(), std::uint8_t{1})), to, 0); }

template <std::uint8_t Counts>
struct NotZero8 {
  HWY_INLINE void operator()(const std::uint8_t* from, std::uint8_t* to) const {
    const V8 counted = hn::And(get(D8(), from, 0), hn::Set(D8(), Counts));
    put_bools(hn::VecFromMask(D8(), hn::Eq(counted, hn::Zero(D8()))), to);
  }
};
struct NotZero16 {  // 16-bit floats; the addition shifts the sign out
  HWY_INLINE void operator()(const std::uint8_t* from, std::uint8_t* to) const {
    const auto part = [&](std::size_t i) HWY_ATTR {
      return hn::VecFromMask(D16(), hn::Eq(hn::Add(get(D16(), from, i), get(D16(), from, i)), hn::Zero(D16())));
    };
    put_bools(low_halves(part(0), part(1)), to);
  }
};
template <class D>
struct NotZero32 {
  HWY_INLINE void operator()(const std::uint8_t* from, std::uint8_t* to) const {
    const auto part = [&](std::size_t i) HWY_ATTR { return is_zero(D(), from, i); };
    put_bools(low_bytes(part(0), part(1), part(2), part(3)), to);
  }
};
template <class D>
struct NotZero64 {
  HWY_INLINE void operator()(const std::uint8_t* from, std::uint8_t* to) const {
    const auto part = [&](std::size_t i) HWY_ATTR { return low_halves(is_zero(D(), from, 2 * i), is_zero(D(), from, 2 * i + 1)); };
    put_bools(low_bytes(part(0), part(1), part(2), part(3)), to);
  }
};

template <>
struct Op<DType::boolean, DType::u8, Rounding::nearest> : NotZero8<0xff> {};
template <>
struct Op<DType::u8, DType::boolean, Rounding::nearest> : NotZero8<0xff> {};
template <>
struct Op<DType::f8e4m3, DType::boolean, Rounding::nearest> : NotZero8<0x7f> {};
template <>
struct Op<DType::f16, DType::boolean, Rounding::nearest> : NotZero16 {};
template <>
struct Op<DType::i32, DType::boolean, Rounding::nearest> : NotZero32<D32> {};
template <>
struct Op<DType::f32, DType::boolean, Rounding::nearest> : NotZero32<F32> {};
template <>
struct Op<DType::i64, DType::boolean, Rounding::nearest> : NotZero64<D64> {};
template <>
struct Op<DType::f64, DType::boolean, Rounding::nearest> : NotZero64<F64> {};

}  // namespace berth::internal::copy::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target guard
