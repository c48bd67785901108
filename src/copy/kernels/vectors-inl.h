// SPDX-License-Identifier: Apache-2.0
// Vector types and helpers of the SIMD kernels. Included once for each instruction set, in a namespace of its
// own.
#if defined(BERTH_COPY_KERNELS_VECTORS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BERTH_COPY_KERNELS_VECTORS_INL_H_
#undef BERTH_COPY_KERNELS_VECTORS_INL_H_
#else
#define BERTH_COPY_KERNELS_VECTORS_INL_H_
#endif

#include <cstdint>

#include <hwy/highway.h>
#include "copy/kernels/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace berth::internal::copy::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Elements are processed in blocks of as many as a vector has bytes: one vector of 8-bit elements, two of 16
// bits, four of 32.
using D8 = hn::ScalableTag<std::uint8_t>;
using D16 = hn::Repartition<std::uint16_t, D8>;
using D32 = hn::Repartition<std::uint32_t, D8>;
using D64 = hn::Repartition<std::uint64_t, D8>;
using I8 = hn::RebindToSigned<D8>;
using I16 = hn::RebindToSigned<D16>;
using I32 = hn::RebindToSigned<D32>;
using I64 = hn::RebindToSigned<D64>;
using F32 = hn::RebindToFloat<D32>;
using F64 = hn::RebindToFloat<D64>;
using V8 = hn::Vec<D8>;
using V16 = hn::Vec<D16>;
using V32 = hn::Vec<D32>;
using V64 = hn::Vec<D64>;
using VF32 = hn::Vec<F32>;
using VF64 = hn::Vec<F64>;
using VI32 = hn::Vec<I32>;
using VI64 = hn::Vec<I64>;

constexpr std::size_t kBlock = HWY_MAX_BYTES;

// The i-th vector of a block, loaded as bytes, which need no alignment.
template <class D>
HWY_INLINE hn::Vec<D> get(D d, const std::uint8_t* block, std::size_t i) {
  return hn::BitCast(d, hn::LoadU(D8(), block + i * kBlock));
}
template <class V>
HWY_INLINE void put(V v, std::uint8_t* block, std::size_t i) {
  hn::StoreU(hn::BitCast(D8(), v), D8(), block + i * kBlock);
}

// The low (or high) halves of the lanes of two vectors, in order: the even (or odd) elements at half the width.
HWY_INLINE V16 low_halves(V32 a, V32 b) { return hn::ConcatEven(D16(), hn::BitCast(D16(), b), hn::BitCast(D16(), a)); }
HWY_INLINE V16 high_halves(V32 a, V32 b) { return hn::ConcatOdd(D16(), hn::BitCast(D16(), b), hn::BitCast(D16(), a)); }
HWY_INLINE V8 low_halves(V16 a, V16 b) { return hn::ConcatEven(D8(), hn::BitCast(D8(), b), hn::BitCast(D8(), a)); }
HWY_INLINE V8 high_halves(V16 a, V16 b) { return hn::ConcatOdd(D8(), hn::BitCast(D8(), b), hn::BitCast(D8(), a)); }
HWY_INLINE V32 low_halves(V64 a, V64 b) { return hn::ConcatEven(D32(), hn::BitCast(D32(), b), hn::BitCast(D32(), a)); }

HWY_INLINE V8 low_bytes(V32 a, V32 b, V32 c, V32 d) { return low_halves(low_halves(a, b), low_halves(c, d)); }

template <class D, class V>
HWY_INLINE hn::Vec<D> widen_lower(D d, V v) {
  return hn::PromoteTo(d, hn::LowerHalf(v));
}
template <class D, class V>
HWY_INLINE hn::Vec<D> widen_upper(D d, V v) {
  return hn::PromoteTo(d, hn::UpperHalf(hn::Half<hn::DFromV<V>>(), v));
}

// 16-bit values as the high halves of 32-bit lanes, for the lower and the upper half of a vector.
HWY_INLINE V32 raise_lower(V16 v) {
  if constexpr (kBlock == 16)
    return hn::BitCast(D32(), hn::InterleaveLower(D16(), hn::Zero(D16()), v));
  else
    return hn::ShiftLeft<16>(widen_lower(D32(), v));
}
HWY_INLINE V32 raise_upper(V16 v) {
  if constexpr (kBlock == 16)
    return hn::BitCast(D32(), hn::InterleaveUpper(D16(), hn::Zero(D16()), v));
  else
    return hn::ShiftLeft<16>(widen_upper(D32(), v));
}

// One cast of a block.
template <DType From, DType To, Rounding How>
struct Op;

}  // namespace berth::internal::copy::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target guard
