// SPDX-License-Identifier: Apache-2.0
// Casts to one-byte elements: from one-byte elements by table lookup in vector registers, from wider ones
// through f32.
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
namespace berth::internal::copy::HWY_NAMESPACE {

// Casts that are shorter than those through rows of f32. On ARM64 arm_casts.h has them.
constexpr bool kHasByteCasts = HWY_ARCH_X86;

// ---- Between bytes.

#if HWY_ARCH_X86
// Half a table is eight rows of sixteen. Each row is looked up with the low four bits of every index, and gives
// 0 where the index is negative. The index starts as the byte and decreases by sixteen per row, so that it
// becomes negative after the byte's own row. Each row holds the XOR with the row before it, so the XOR of all
// lookups is the result.
HWY_INLINE V8 look_up_half(const std::uint8_t* steps, V8 bytes) {
  auto index = hn::BitCast(I8(), bytes);
  V8 found = hn::Zero(D8());
  for (std::size_t row = 0; row < 8; ++row) {
    found = hn::Xor(found, hn::TableLookupBytesOr0(hn::LoadDup128(D8(), steps + 16 * row), hn::BitCast(D8(), index)));
    index = hn::SaturatedSub(index, hn::Set(I8(), std::int8_t{16}));
  }
  return found;
}

template <DType From, DType To>
concept BetweenBytes = (size_bytes(From) == 1 && size_bytes(To) == 1 && (is_float8(From) || is_float8(To)));

template <DType From, DType To>
requires BetweenBytes<From, To>
struct Op<From, To, Rounding::nearest> {
  HWY_INLINE void operator()(const std::uint8_t* from, std::uint8_t* to) const {
    const V8 bytes = get(D8(), from, 0);
    const V8 low = look_up_half(kByteSteps<From, To>.to, bytes);
    const V8 high = look_up_half(kByteSteps<From, To>.to + 128, hn::Xor(bytes, hn::Set(D8(), std::uint8_t{0x80})));
    put(hn::Xor(low, high), to, 0);  // one of them is 0
  }
};
#endif

// ---- From wider elements.

// Integers past 2^20 overflow every 8-bit float, and f32 holds all smaller ones exactly.
template <class D>
HWY_INLINE hn::Vec<D> within_float8(D d, hn::Vec<D> v) {
  constexpr hn::TFromD<D> kMost = 1 << 20;
  return hn::Min(hn::Max(v, hn::Set(d, -kMost)), hn::Set(d, kMost));
}

// The i-th quarter of a block as f32: its values, or values that round to the same bytes. NaN need not be
// quiet.
template <DType From>
HWY_INLINE VF32 read_f32(const std::uint8_t* from, std::size_t i) {
  if constexpr (From == DType::f32) return get(F32(), from, i);
  if constexpr (From == DType::f16) return i % 2 == 0 ? f16_lower(get(D16(), from, i / 2)) : f16_upper(get(D16(), from, i / 2));
  if constexpr (From == DType::bf16)
    return hn::BitCast(F32(), i % 2 == 0 ? raise_lower(get(D16(), from, i / 2)) : raise_upper(get(D16(), from, i / 2)));
  if constexpr (From == DType::f64) return narrow_to_odd(get(F64(), from, 2 * i), get(F64(), from, 2 * i + 1));
  if constexpr (From == DType::i32) return hn::ConvertTo(F32(), within_float8(I32(), get(I32(), from, i)));
  if constexpr (From == DType::i64) {
    const auto part = [&](std::size_t k) HWY_ATTR { return hn::BitCast(D64(), within_float8(I64(), get(I64(), from, k))); };
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

constexpr bool is_wide_float(DType dtype) {
  return dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::f32 || dtype == DType::f64;
}
constexpr bool is_wide_integer(DType dtype) { return dtype == DType::i32 || dtype == DType::i64; }
constexpr bool is_byte(DType dtype) { return dtype == DType::u8 || dtype == DType::i8; }

template <DType From, DType To>
concept IntoBytes = (is_wide_float(From) && (is_byte(To) || is_float8(To))) || (is_wide_integer(From) && is_float8(To));

template <DType From, DType To>
requires IntoBytes<From, To>
struct Op<From, To, Rounding::nearest> {
  HWY_INLINE void operator()(const std::uint8_t* from, std::uint8_t* to) const {
    const auto part = [&](std::size_t i) HWY_ATTR { return hn::BitCast(D32(), read_f32<From>(from, i)); };
    const V32 x[4] = {part(0), part(1), part(2), part(3)};
    put(write_byte<To>(x), to, 0);
  }
};

}  // namespace berth::internal::copy::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target guard
