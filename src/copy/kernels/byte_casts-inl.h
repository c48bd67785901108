// SPDX-License-Identifier: Apache-2.0
// Casts into elements of one byte: from others of one byte by looking them up in vector registers, from wider ones through f32.
#if defined(BERTH_COPY_KERNELS_BYTE_CASTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BERTH_COPY_KERNELS_BYTE_CASTS_INL_H_
#undef BERTH_COPY_KERNELS_BYTE_CASTS_INL_H_
#else
#define BERTH_COPY_KERNELS_BYTE_CASTS_INL_H_
#endif

#include "copy/kernels/byte_table.h"
#include "copy/kernels/float_casts-inl.h"
#include "copy/kernels/number_casts-inl.h"
#include "copy/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace berth::HWY_NAMESPACE {

// Ways that are shorter than through rows of f32. On ARM64 arm_casts.h has them all.
constexpr bool kHasByteCasts = HWY_ARCH_X86;

// ---- Between bytes.

#if HWY_ARCH_X86
#if HWY_TARGET == HWY_AVX3_DL
// Half of the table is two registers, which an instruction looks seven bits up in.
HWY_INLINE V8 look_up(const ByteTable& table, V8 bytes) {
  const auto part = [&](std::size_t i) HWY_ATTR { return hn::Load(D8(), table.to + 64 * i).raw; };
  const __m512i low = _mm512_permutex2var_epi8(part(0), bytes.raw, part(1));
  const __m512i high = _mm512_permutex2var_epi8(part(2), bytes.raw, part(3));
  return V8{_mm512_mask_blend_epi8(_mm512_movepi8_mask(bytes.raw), low, high)};
}
#else
// The table is sixteen rows of sixteen. Each is asked for every byte, and answers 0 for those that are not its own, whose index has its
// highest bit set: without the row's number its own are 0 to 15, all others more, and 0x70 carries just those over.
HWY_INLINE V8 look_up(const ByteTable& table, V8 bytes) {
  const D8 d;
  V8 found = hn::Zero(d);
  for (std::size_t row = 0; row < 16; ++row) {
    const V8 own = hn::Xor(bytes, hn::Set(d, static_cast<std::uint8_t>(16 * row)));
    const V8 index = hn::SaturatedAdd(own, hn::Set(d, std::uint8_t{0x70}));
    found = hn::Or(found, hn::TableLookupBytesOr0(hn::LoadDup128(d, table.to + 16 * row), index));
  }
  return found;
}
#endif

template <DType From, DType To>
concept BetweenBytes = (size_bytes(From) == 1 && size_bytes(To) == 1);

template <DType From, DType To>
requires BetweenBytes<From, To>
struct Op<From, To, Rounding::nearest> {
  HWY_INLINE void operator()(const std::uint8_t* from, std::uint8_t* to) const {
    put(look_up(kByteTable<From, To>, get(D8(), from, 0)), to, 0);
  }
};
#endif

// ---- From wider elements.

// Integers past 2^20 are past all floats of 8 bits, and up to there f32 has every one.
template <class D>
HWY_INLINE hn::Vec<D> bounded(D d, hn::Vec<D> v) {
  constexpr hn::TFromD<D> kMost = 1 << 20;
  return hn::Min(hn::Max(v, hn::Set(d, -kMost)), hn::Set(d, kMost));
}

// The i-th quarter of a block as f32: its value, or what rounds to the same bytes. NaN need not be quiet.
template <DType From>
HWY_INLINE VF32 read_f32(const std::uint8_t* from, std::size_t i) {
  if constexpr (From == DType::f32) return get(F32(), from, i);
  if constexpr (From == DType::f16) return i % 2 == 0 ? f16_lower(get(D16(), from, i / 2)) : f16_upper(get(D16(), from, i / 2));
  if constexpr (From == DType::bf16)
    return hn::BitCast(F32(), i % 2 == 0 ? raise_lower(get(D16(), from, i / 2)) : raise_upper(get(D16(), from, i / 2)));
  if constexpr (From == DType::f64) return narrow_to_odd(get(F64(), from, 2 * i), get(F64(), from, 2 * i + 1));
  if constexpr (From == DType::i32) return hn::ConvertTo(F32(), bounded(I32(), get(I32(), from, i)));
  if constexpr (From == DType::i64) {
    const auto part = [&](std::size_t k) HWY_ATTR { return hn::BitCast(D64(), bounded(I64(), get(I64(), from, k))); };
    return hn::ConvertTo(F32(), hn::BitCast(I32(), low_halves(part(2 * i), part(2 * i + 1))));
  }
}

template <DType To>
HWY_INLINE V8 write_byte(const V32 (&x)[4]) {
  if constexpr (To == DType::f8e4m3) return encode_float8<float8_e4m3>(x);
  if constexpr (To == DType::f8e5m2) return encode_float8<float8_e5m2>(x);
  if constexpr (To == DType::i8) return truncate_to_bytes<std::int8_t>(x);
  if constexpr (To == DType::u8) return truncate_to_bytes<std::uint8_t>(x);
}

template <DType From, DType To>
concept IntoBytes = (size_bytes(From) > 1 && size_bytes(To) == 1 && To != DType::boolean);

template <DType From, DType To>
requires IntoBytes<From, To>
struct Op<From, To, Rounding::nearest> {
  HWY_INLINE void operator()(const std::uint8_t* from, std::uint8_t* to) const {
    const auto part = [&](std::size_t i) HWY_ATTR { return hn::BitCast(D32(), read_f32<From>(from, i)); };
    const V32 x[4] = {part(0), part(1), part(2), part(3)};
    put(write_byte<To>(x), to, 0);
  }
};

}  // namespace berth::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target guard
