// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "berth/base/dtype.h"
#include "device/cuda/kernels/quads.h"

// All conversions, one element at a time, for pairs without a specialized kernel. The dtypes are known only at
// run time: an element is widened, exactly, to one of four kinds of lane, and narrowed from there with a single
// rounding, as in the reference on the host (decision 0003).
namespace berth::internal::device::cuda {

enum class LaneKind : std::uint8_t { u64, i64, f64, c128 };

// The bytes of an element, little-endian; or a lane's value: 64 bits, or two f64.
struct Bits {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
};

BERTH_BOTH LaneKind lane_of(DType dtype) noexcept {
  if (dtype <= DType::u64) return LaneKind::u64;
  if (dtype <= DType::i64) return LaneKind::i64;
  return dtype <= DType::f64 ? LaneKind::f64 : LaneKind::c128;
}

namespace lanes {

using hardware::bits_as;

BERTH_BOTH std::uint64_t of_double(double value) noexcept { return bits_as<std::uint64_t>(value); }
BERTH_BOTH double as_double(std::uint64_t bits) noexcept { return bits_as<double>(bits); }
BERTH_BOTH std::uint64_t widen_f32(std::uint64_t bits) noexcept {
  return of_double(quads::widen(bits_as<float>(static_cast<std::uint32_t>(bits))));
}
BERTH_BOTH std::uint32_t narrow_f32(std::uint64_t bits) noexcept { return bits_as<std::uint32_t>(quads::narrow(as_double(bits))); }

BERTH_BOTH int leading_zeros(std::uint64_t value) noexcept {  // REQUIRES: value != 0
#ifdef __CUDA_ARCH__
  return __clzll(static_cast<long long>(value));
#else
  return __builtin_clzll(value);
#endif
}

// An integer as a double, rounded to odd.
BERTH_BOTH double to_odd(std::uint64_t magnitude) noexcept {
  const int extra = magnitude == 0 ? 0 : 11 - leading_zeros(magnitude);
  if (extra <= 0) return static_cast<double>(magnitude);
  const std::uint64_t rest = (magnitude & ((std::uint64_t{1} << extra) - 1)) != 0 ? 1 : 0;
  return static_cast<double>(magnitude >> extra | rest) * as_double(static_cast<std::uint64_t>(1023 + extra) << 52);
}
BERTH_BOTH double to_odd(LaneKind kind, std::uint64_t bits) noexcept {
  const bool negative = kind == LaneKind::i64 && bits >> 63 != 0;
  return negative ? -to_odd(0 - bits) : to_odd(bits);
}

// Rounds toward zero and saturates to an integer of `bits` bits; NaN becomes 0.
BERTH_BOTH std::uint64_t truncated(double value, int bits, bool has_sign) noexcept {
  const double beyond = as_double(static_cast<std::uint64_t>(1023 + bits - (has_sign ? 1 : 0)) << 52);
  const std::uint64_t least = has_sign ? std::uint64_t{1} << (bits - 1) : 0;
  if (!(value > (has_sign ? -beyond : 0.0))) return value != value ? 0 : least;
  if (value >= beyond) return has_sign ? least - 1 : ~std::uint64_t{0} >> (64 - bits);
  return value < 0 ? static_cast<std::uint64_t>(static_cast<std::int64_t>(value)) : static_cast<std::uint64_t>(value);
}

BERTH_BOTH std::uint64_t encode(DType dtype, double value) noexcept {
  switch (dtype) {
    case DType::f8e4m3: return float8_e4m3::encode(value);
    case DType::f8e5m2: return float8_e5m2::encode(value);
    case DType::f16: return float16::encode(value);
    case DType::bf16: return bfloat16::encode(value);
    case DType::f32: return bits_as<std::uint32_t>(quads::narrow(value));
    default: return of_double(value);
  }
}

BERTH_BOTH std::uint64_t float_of_integer(DType dtype, LaneKind kind, std::uint64_t bits) noexcept {
  if (dtype == DType::f64 || dtype == DType::c128)
    return of_double(kind == LaneKind::i64 ? static_cast<double>(static_cast<std::int64_t>(bits)) : static_cast<double>(bits));
  return encode(dtype == DType::c64 ? DType::f32 : dtype, to_odd(kind, bits));
}

BERTH_BOTH bool is_integer(DType dtype) noexcept { return dtype <= DType::i64; }
BERTH_BOTH std::uint64_t real_part(DType dtype, LaneKind kind, const Bits& lane) noexcept {
  const bool from_integer = kind == LaneKind::u64 || kind == LaneKind::i64;
  if (is_integer(dtype)) {
    if (from_integer) return lane.low;  // the store truncates modulo 2^bits
    return truncated(as_double(lane.low), static_cast<int>(8 * size_bytes(dtype)), dtype >= DType::i8);
  }
  if (from_integer) return float_of_integer(dtype, kind, lane.low);
  return encode(dtype == DType::c64 ? DType::f32 : dtype, as_double(lane.low));
}

}  // namespace lanes

BERTH_BOTH Bits widen(DType dtype, const Bits& element) noexcept {
  using namespace lanes;
  const std::uint64_t bits = element.low;
  switch (dtype) {
    case DType::boolean: return {bits != 0 ? std::uint64_t{1} : 0, 0};
    case DType::u8:
    case DType::u16:
    case DType::u32:
    case DType::u64:
    case DType::i64:
    case DType::f64: return {bits, 0};
    case DType::i8: return {static_cast<std::uint64_t>(std::int64_t{static_cast<std::int8_t>(bits)}), 0};
    case DType::i16: return {static_cast<std::uint64_t>(std::int64_t{static_cast<std::int16_t>(bits)}), 0};
    case DType::i32: return {static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(bits)}), 0};
    case DType::f8e4m3: return {of_double(float8_e4m3::decode(static_cast<std::uint8_t>(bits))), 0};
    case DType::f8e5m2: return {of_double(float8_e5m2::decode(static_cast<std::uint8_t>(bits))), 0};
    case DType::f16: return {of_double(float16::decode(static_cast<std::uint16_t>(bits))), 0};
    case DType::bf16: return {of_double(bfloat16::decode(static_cast<std::uint16_t>(bits))), 0};
    case DType::f32: return {widen_f32(bits), 0};
    case DType::c64: return {widen_f32(bits), widen_f32(bits >> 32)};
    case DType::c128: return element;
  }
  return {};
}

// The bytes past those of the dtype are indeterminate.
BERTH_BOTH Bits narrow(DType dtype, LaneKind kind, const Bits& lane) noexcept {
  using namespace lanes;
  const bool is_complex = kind == LaneKind::c128;
  if (dtype == DType::boolean) {
    if (kind == LaneKind::u64 || kind == LaneKind::i64) return {lane.low != 0 ? std::uint64_t{1} : 0, 0};
    return {as_double(lane.low) != 0 || (is_complex && as_double(lane.high) != 0) ? std::uint64_t{1} : 0, 0};
  }
  const std::uint64_t real = real_part(dtype, kind, lane);
  if (dtype == DType::c64) return {real | std::uint64_t{is_complex ? narrow_f32(lane.high) : 0} << 32, 0};
  return {real, is_complex ? lane.high : 0};
}

// REQUIRES: different dtypes. The bytes of `element` past those of its dtype are 0.
BERTH_BOTH Bits convert(DType from, DType to, const Bits& element) noexcept { return narrow(to, lane_of(from), widen(from, element)); }

}  // namespace berth::internal::device::cuda
