// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "berth/base/dtype.h"
#include "device/cuda/kernels/hardware.h"
#include "device/cuda/kernels/packed.h"

// The fast conversions among f32, f64, f16, bf16, f8e4m3, f8e5m2 and i8, four elements at a time, bit for bit
// as in copy/convert.h. Most go through f32, which holds every value of the other types but f64's; an f64 is
// rounded to odd first, which avoids double rounding. (Those that do not are in packed.h.) Hardware
// instructions do nearly everything; where they deviate from the rules, for NaN and overflow, the result is
// fixed up after them.
//
// An intermediate f32 NaN keeps its sign and payload and may be signalling: it is made quiet when it is
// encoded.
namespace berth::internal::device::cuda {

constexpr bool is_quick(DType dtype) noexcept {
  return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::f8e4m3 ||
         dtype == DType::f8e5m2 || dtype == DType::i8;
}

// Four elements in memory order: as many words as an element has bytes.
template <DType D>
struct Quad {
  std::uint32_t words[size_bytes(D)];
};

struct Floats {
  float at[4];
};

namespace quads {

using hardware::bits_as;
using hardware::is_nan;
using hardware::permute;

inline constexpr std::uint32_t kSign = 0x80000000U;
inline constexpr std::uint32_t kQuiet = 0x00400000U;
inline constexpr std::uint32_t kNaN = 0x7fc00000U;
inline constexpr std::uint32_t kInfinity = 0x7f800000U;

BERTH_BOTH std::uint32_t bits(float value) noexcept { return bits_as<std::uint32_t>(value); }

// The upper half of a word, and its lower half shifted up.
BERTH_BOTH std::uint32_t upper(std::uint32_t word) noexcept { return word & 0xffff0000U; }
BERTH_BOTH std::uint32_t lower(std::uint32_t word) noexcept { return word << 16; }

// From an f16 in the upper half of a word.
BERTH_BOTH float widen_f16(std::uint32_t half) noexcept {
  const float value = hardware::f32_of_f16(half >> 16);
  return is_nan(value) ? bits_as<float>((half & kSign) | kInfinity | (half & 0x03ff0000U) >> 3) : value;
}

// From an f8e4m3 in the highest byte of a word, whose value as f16 is in the lower half of another.
BERTH_BOTH float widen_e4m3(std::uint32_t byte, std::uint32_t half) noexcept {
  const float value = hardware::f32_of_f16(half);
  return is_nan(value) ? bits_as<float>((byte & kSign) | kNaN) : value;
}

// From a byte that is biased by 128.
template <int Byte>
BERTH_BOTH float widen_i8(std::uint32_t biased) noexcept {
  return bits_as<float>(permute(biased, 0x4b000000U, 0x7440U | Byte)) - 8388736.0F;  // 2^23 + 128
}

BERTH_BOTH double widen(float value) noexcept {
  const std::uint32_t raw = bits(value);
  const std::uint64_t nan = std::uint64_t{raw & kSign} << 32 | 0x7ff8000000000000U | std::uint64_t{raw & 0x007fffffU} << 29;
  return is_nan(value) ? bits_as<double>(nan) : static_cast<double>(value);
}

// A NaN with the sign and the top bits of the payload.
BERTH_BOTH float narrow_nan(double value) noexcept {
  const auto raw = bits_as<std::uint64_t>(value);
  const auto high = static_cast<std::uint32_t>(raw >> 32);
  return bits_as<float>((high & kSign) | kNaN | (static_cast<std::uint32_t>(raw >> 29) & 0x007fffffU));
}
BERTH_BOTH float narrow(double value) noexcept { return is_nan(value) ? narrow_nan(value) : hardware::f32_of_f64(value); }
BERTH_BOTH float narrow_to_odd(double value) noexcept {
  const float cut = hardware::f32_toward_zero(value);
  // An infinity is exact; the largest f32 is odd already.
  const std::uint32_t rest = static_cast<double>(cut) != value ? 1 : 0;
  return is_nan(value) ? narrow_nan(value) : bits_as<float>(bits(cut) | rest);
}

// Two elements in the halves of a word.
BERTH_BOTH std::uint32_t to_bf16x2(float first, float second) noexcept {
  std::uint32_t made = hardware::bf16x2(first, second);
  if (is_nan(first)) made = (made & 0xffff0000U) | bits(first) >> 16 | 0x0040U;
  if (is_nan(second)) made = (made & 0x0000ffffU) | upper(bits(second)) | 0x00400000U;
  return made;
}

BERTH_BOTH std::uint32_t nan_f16(float value) noexcept { return (bits(value) >> 16 & 0x8000U) | 0x7e00U | (bits(value) >> 13 & 0x03ffU); }
BERTH_BOTH std::uint32_t to_f16x2(float first, float second) noexcept {
  std::uint32_t made = hardware::f16x2(first, second);
  if (is_nan(first)) made = (made & 0xffff0000U) | nan_f16(first);
  if (is_nan(second)) made = (made & 0x0000ffffU) | nan_f16(second) << 16;
  return made;
}

// Replaces byte number `Byte` of the word when the value is not finite or overflows. 464 is halfway between the
// largest value and what would be the next, and rounds down to even; 61440 rounds up.
template <int Byte>
BERTH_BOTH std::uint32_t put_right_e4m3(std::uint32_t word, float value) noexcept {
  const std::uint32_t nan = (bits(value) >> 24 & 0x80U) | 0x7fU;
  return hardware::magnitude(value) <= 464.0F ? word : (word & ~(0xffU << 8 * Byte)) | nan << 8 * Byte;
}
template <int Byte>
BERTH_BOTH std::uint32_t put_right_e5m2(std::uint32_t word, float value) noexcept {
  const std::uint32_t raw = bits(value);
  const std::uint32_t top = is_nan(value) ? 0x7eU | (raw >> 21 & 3U) : 0x7cU;
  return hardware::magnitude(value) < 61440.0F ? word : (word & ~(0xffU << 8 * Byte)) | ((raw >> 24 & 0x80U) | top) << 8 * Byte;
}

}  // namespace quads

template <DType D>
BERTH_BOTH Floats to_floats(const Quad<D>& quad) noexcept {
  using namespace quads;
  static_assert(is_quick(D) && D != DType::f64);
  if constexpr (D == DType::f32) {
    return {{bits_as<float>(quad.words[0]), bits_as<float>(quad.words[1]), bits_as<float>(quad.words[2]), bits_as<float>(quad.words[3])}};
  } else if constexpr (D == DType::bf16) {
    return {{bits_as<float>(lower(quad.words[0])), bits_as<float>(upper(quad.words[0])), bits_as<float>(lower(quad.words[1])),
             bits_as<float>(upper(quad.words[1]))}};
  } else if constexpr (D == DType::f16) {
    return {{widen_f16(lower(quad.words[0])), widen_f16(upper(quad.words[0])), widen_f16(lower(quad.words[1])),
             widen_f16(upper(quad.words[1]))}};
  } else if constexpr (D == DType::f8e5m2) {  // the upper byte of an f16
    const std::uint32_t word = quad.words[0];
    return {{widen_f16(word << 24), widen_f16((word & 0xff00U) << 16), widen_f16((word & 0xff0000U) << 8), widen_f16(word & 0xff000000U)}};
  } else if constexpr (D == DType::f8e4m3) {
    const std::uint32_t word = quad.words[0];
    const std::uint32_t first = hardware::f16x2_of_e4m3x2(word & 0xffffU);
    const std::uint32_t second = hardware::f16x2_of_e4m3x2(word >> 16);
    return {{widen_e4m3(word << 24, first), widen_e4m3(word << 16, first >> 16), widen_e4m3(word << 8, second),
             widen_e4m3(word, second >> 16)}};
  } else {
    const std::uint32_t biased = quad.words[0] ^ 0x80808080U;
    return {{widen_i8<0>(biased), widen_i8<1>(biased), widen_i8<2>(biased), widen_i8<3>(biased)}};
  }
}

template <DType D>
BERTH_BOTH Quad<D> from_floats(const Floats& floats) noexcept {
  using namespace quads;
  static_assert(is_quick(D));
  const float(&v)[4] = floats.at;
  if constexpr (D == DType::f32) {
    Quad<D> made;
    for (int i = 0; i < 4; ++i) made.words[i] = is_nan(v[i]) ? bits(v[i]) | kQuiet : bits(v[i]);
    return made;
  } else if constexpr (D == DType::f64) {
    Quad<D> made;
    for (int i = 0; i < 4; ++i) {
      const auto raw = bits_as<std::uint64_t>(widen(v[i]));
      made.words[2 * i] = static_cast<std::uint32_t>(raw);
      made.words[2 * i + 1] = static_cast<std::uint32_t>(raw >> 32);
    }
    return made;
  } else if constexpr (D == DType::bf16) {
    return {{to_bf16x2(v[0], v[1]), to_bf16x2(v[2], v[3])}};
  } else if constexpr (D == DType::f16) {
    return {{to_f16x2(v[0], v[1]), to_f16x2(v[2], v[3])}};
  } else if constexpr (D == DType::f8e4m3) {
    std::uint32_t made = hardware::e4m3x2(v[0], v[1]) | hardware::e4m3x2(v[2], v[3]) << 16;
    made = put_right_e4m3<1>(put_right_e4m3<0>(made, v[0]), v[1]);
    return {{put_right_e4m3<3>(put_right_e4m3<2>(made, v[2]), v[3])}};
  } else if constexpr (D == DType::f8e5m2) {
    std::uint32_t made = hardware::e5m2x2(v[0], v[1]) | hardware::e5m2x2(v[2], v[3]) << 16;
    made = put_right_e5m2<1>(put_right_e5m2<0>(made, v[0]), v[1]);
    return {{put_right_e5m2<3>(put_right_e5m2<2>(made, v[2]), v[3])}};
  } else {
    return {
        {hardware::i8x4(hardware::i32_of_f32(v[0]), hardware::i32_of_f32(v[1]), hardware::i32_of_f32(v[2]), hardware::i32_of_f32(v[3]))}};
  }
}

// Pairs that are converted within packed words.
constexpr bool has_packed(DType from, DType to) noexcept {
  using enum DType;
  if (to == f8e5m2) return from == f16 || from == bf16 || from == f8e4m3 || from == i8;
  if (to == f8e4m3) return from == f16 || from == f8e5m2 || from == i8;
  return to == f16 && (from == f8e4m3 || from == f8e5m2);
}

template <DType From, DType To>
BERTH_BOTH Quad<To> convert_packed(const Quad<From>& quad) noexcept {
  using enum DType;
  const auto& words = quad.words;
  if constexpr (From == i8) {  // no value overflows or is NaN
    const Floats v = to_floats<From>(quad);
    if constexpr (To == f8e4m3)
      return {{hardware::e4m3x2(v.at[0], v.at[1]) | hardware::e4m3x2(v.at[2], v.at[3]) << 16}};
    else
      return {{hardware::e5m2x2(v.at[0], v.at[1]) | hardware::e5m2x2(v.at[2], v.at[3]) << 16}};
  } else if constexpr (From == f16 && To == f8e4m3) {
    return {{packed::f16_to_e4m3(words[0], words[1])}};
  } else if constexpr (From == f16) {
    return {{packed::upper_bytes(packed::round_to_upper(words[0]), packed::round_to_upper(words[1]))}};
  } else if constexpr (From == bf16) {
    return {{packed::bf16_to_e5m2(words[0], words[1])}};
  } else if constexpr (From == f8e4m3 && To == f16) {
    Quad<To> made;
    packed::e4m3_to_f16(words[0], made.words);
    return made;
  } else if constexpr (From == f8e4m3) {
    return {{packed::e4m3_to_e5m2(words[0])}};
  } else if constexpr (To == f16) {
    const std::uint32_t quiet = packed::quiet_e5m2(words[0]);
    return {{packed::raise_first(quiet), packed::raise_last(quiet)}};
  } else {
    return {{packed::e5m2_to_e4m3(words[0])}};
  }
}

// Any pair of quick dtypes; equal dtypes, quick or not, keep their bits.
template <DType From, DType To>
BERTH_BOTH Quad<To> convert(const Quad<From>& quad) noexcept {
  if constexpr (From == To) {
    return quad;
  } else if constexpr (From == DType::f64) {
    Floats floats;
    for (int i = 0; i < 4; ++i) {
      const auto value = hardware::bits_as<double>(std::uint64_t{quad.words[2 * i + 1]} << 32 | quad.words[2 * i]);
      floats.at[i] = To == DType::f32 ? quads::narrow(value) : quads::narrow_to_odd(value);
    }
    return from_floats<To>(floats);
  } else if constexpr (has_packed(From, To)) {
    return convert_packed<From, To>(quad);
  } else {
    return from_floats<To>(to_floats<From>(quad));
  }
}

}  // namespace berth::internal::device::cuda
