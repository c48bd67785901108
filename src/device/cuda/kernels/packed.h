// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cuda/kernels/hardware.h"

// Conversions to and from 8-bit floats, two or four elements per word (SIMD within a register): for elements of
// one or two bytes, going through f32 with a branch per element could not keep up with memory bandwidth. The
// rules are those of quads.h; conditions are masks, made by additions that carry into an element's sign bit and
// never beyond it:
//
//     (code & 0x7f) + (0x80 - least)      has bit 7 where the magnitude is at least `least`, for each byte of a word
namespace berth::internal::device::cuda::packed {

inline constexpr std::uint32_t kSigns8 = 0x80808080U;
inline constexpr std::uint32_t kSigns16 = 0x80008000U;

// The sign bit of each byte, or half, whose magnitude is at least `least`.
BERTH_BOTH std::uint32_t at_least8(std::uint32_t word, std::uint32_t least) noexcept {
  return ((word & ~kSigns8) + (0x80U - least) * 0x01010101U) & kSigns8;
}
BERTH_BOTH std::uint32_t at_least16(std::uint32_t word, std::uint32_t least) noexcept {
  return ((word & ~kSigns16) + (0x8000U - least) * 0x00010001U) & kSigns16;
}

// All bits of each byte, or half, whose sign bit is set. REQUIRES: no other bits are set.
BERTH_BOTH std::uint32_t spread8(std::uint32_t signs) noexcept { return (signs >> 7) * 0xffU; }
BERTH_BOTH std::uint32_t spread16(std::uint32_t signs) noexcept { return (signs >> 15) * 0xffffU; }

BERTH_BOTH std::uint32_t choose(std::uint32_t mask, std::uint32_t there, std::uint32_t elsewhere) noexcept {
  return (there & mask) | (elsewhere & ~mask);
}

// Bytes as the upper halves of f16: the first two of a word, and the last two.
BERTH_BOTH std::uint32_t raise_first(std::uint32_t word) noexcept { return hardware::permute(word, 0, 0x1404U); }
BERTH_BOTH std::uint32_t raise_last(std::uint32_t word) noexcept { return hardware::permute(word, 0, 0x3424U); }
// The upper bytes of four halves.
BERTH_BOTH std::uint32_t upper_bytes(std::uint32_t first, std::uint32_t second) noexcept {
  return hardware::permute(first, second, 0x7531U);
}

// Four f8e5m2, which are upper bytes of f16, with every NaN made quiet.
BERTH_BOTH std::uint32_t quiet_e5m2(std::uint32_t word) noexcept { return word | at_least8(word, 0x7dU) >> 6; }

// Two f16 rounded to nearest even in their upper bytes. A NaN is truncated, and made quiet.
BERTH_BOTH std::uint32_t round_to_upper(std::uint32_t halves) noexcept {
  const std::uint32_t nan = at_least16(halves, 0x7c01U);
  const std::uint32_t more = (0x007f007fU + (halves >> 8 & 0x00010001U)) & ~spread16(nan);
  return (halves + more) | nan >> 6;
}

// Four f8e4m3 as two pairs of f16: a NaN becomes the quiet NaN without a payload.
BERTH_BOTH void e4m3_to_f16(std::uint32_t word, std::uint32_t (&made)[2]) noexcept {
  const std::uint32_t nan = spread8(at_least8(word, 0x7fU));
  const std::uint32_t quiet = (word & kSigns8) | 0x7e7e7e7eU;
  made[0] = choose(hardware::permute(nan, 0, 0x1100U), raise_first(quiet), hardware::f16x2_of_e4m3x2(word & 0xffffU));
  made[1] = choose(hardware::permute(nan, 0, 0x3322U), raise_last(quiet), hardware::f16x2_of_e4m3x2(word >> 16));
}

BERTH_BOTH std::uint32_t e4m3_to_e5m2(std::uint32_t word) noexcept {
  const std::uint32_t nan = spread8(at_least8(word, 0x7fU));
  const std::uint32_t number = word & ~nan;  // so that additions do not carry
  const std::uint32_t first = hardware::f16x2_of_e4m3x2(number & 0xffffU);
  const std::uint32_t second = hardware::f16x2_of_e4m3x2(number >> 16);
  const std::uint32_t made =
      upper_bytes(first + 0x007f007fU + (first >> 8 & 0x00010001U), second + 0x007f007fU + (second >> 8 & 0x00010001U));
  return choose(nan, (word & kSigns8) | 0x7e7e7e7eU, made);
}

// 448 exists in both formats; 512, the next f8e5m2, and everything beyond become NaN.
BERTH_BOTH std::uint32_t e5m2_to_e4m3(std::uint32_t word) noexcept {
  const std::uint32_t made = hardware::e4m3x2_of_f16x2(raise_first(word)) | hardware::e4m3x2_of_f16x2(raise_last(word)) << 16;
  return choose(spread8(at_least8(word, 0x60U)), word | 0x7f7f7f7fU, made);
}

// 464 is halfway between 448 and what would be the next, and rounds down to even; anything larger becomes NaN.
BERTH_BOTH std::uint32_t f16_to_e4m3(std::uint32_t first, std::uint32_t second) noexcept {
  const std::uint32_t made = hardware::e4m3x2_of_f16x2(first) | hardware::e4m3x2_of_f16x2(second) << 16;
  const std::uint32_t beyond = upper_bytes(at_least16(first, 0x5f41U), at_least16(second, 0x5f41U));
  return choose(spread8(beyond), upper_bytes(first, second) | 0x7f7f7f7fU, made);
}

// The f8e5m2 codes of two bf16 that are infinite, NaN, or overflow, in the lower bytes of the halves; and the
// mask of where that is so.
struct Beyond {
  std::uint32_t codes;
  std::uint32_t mask;
};
BERTH_BOTH Beyond beyond_e5m2(std::uint32_t pair) noexcept {
  const std::uint32_t nan = at_least16(pair, 0x7f81U) >> 15;
  // one payload bit is kept
  const std::uint32_t codes = (pair >> 8 & 0x00800080U) | 0x007c007cU | nan << 1 | (pair >> 5 & nan);
  // 61440 rounds up
  return {codes, (at_least16(pair, 0x4770U) >> 15) * 0xffU};
}

BERTH_BOTH std::uint32_t bf16_to_e5m2(std::uint32_t first, std::uint32_t second) noexcept {
  const auto as_float = [](std::uint32_t bits) { return hardware::bits_as<float>(bits); };
  const std::uint32_t made = hardware::e5m2x2(as_float(first << 16), as_float(first & 0xffff0000U)) |
                             hardware::e5m2x2(as_float(second << 16), as_float(second & 0xffff0000U)) << 16;
  const Beyond a = beyond_e5m2(first);
  const Beyond b = beyond_e5m2(second);
  return choose(hardware::permute(a.mask, b.mask, 0x6420U), hardware::permute(a.codes, b.codes, 0x6420U), made);
}

}  // namespace berth::internal::device::cuda::packed
