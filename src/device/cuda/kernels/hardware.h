// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>

#include "berth/base/float_types.h"

// The conversion instructions of NVIDIA GPUs as functions of bits, with the hardware's own treatment of NaN and
// overflow. They are emulated on the host, so that code built on them can be tested without a GPU, and on
// devices that do not have them: those for pairs of 16-bit floats came with compute capability 8.0, those for
// 8-bit floats with 8.9.
#ifdef __CUDACC__
#define BERTH_BOTH __host__ __device__ __forceinline__
#else
#define BERTH_BOTH inline
#endif

namespace berth::internal::device::cuda::hardware {

template <class To, class From>
BERTH_BOTH To bits_as(From from) noexcept {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}

BERTH_BOTH bool is_nan(float value) noexcept { return value != value; }
BERTH_BOTH bool is_nan(double value) noexcept { return value != value; }
BERTH_BOTH float magnitude(float value) noexcept { return bits_as<float>(bits_as<std::uint32_t>(value) & 0x7fffffffU); }

// Selects four bytes of eight: bytes 0 to 3 are those of `low`, 4 to 7 those of `high`; each hex digit of
// `which` selects one.
BERTH_BOTH std::uint32_t permute(std::uint32_t low, std::uint32_t high, std::uint32_t which) noexcept {
#ifdef __CUDA_ARCH__
  return __byte_perm(low, high, which);
#else
  const std::uint64_t both = std::uint64_t{high} << 32 | low;
  std::uint32_t made = 0;
  for (int i = 0; i < 4; ++i) made |= static_cast<std::uint32_t>(both >> (8 * (which >> (4 * i) & 7)) & 0xff) << (8 * i);
  return made;
#endif
}

// Emulates an instruction: rounds to nearest even; a NaN has all bits set but the sign. Overflow gives
// infinity, or with Saturate the largest finite value.
template <class Small, bool Saturate>
BERTH_BOTH std::uint32_t encoded(float value) noexcept {
  const std::uint32_t sign = bits_as<std::uint32_t>(value) >> 31 != 0 ? Small::kSign : 0;
  if (is_nan(value)) return Small::kExponent | Small::kMantissa;
  const std::uint32_t made = Small::encode(static_cast<double>(value));
  const std::uint32_t largest = Small::kLargest;
  return Saturate && (made & ~static_cast<std::uint32_t>(Small::kSign)) > largest ? sign | largest : made;
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define BERTH_HAS_F16X2_INSTRUCTIONS 1
#else
#define BERTH_HAS_F16X2_INSTRUCTIONS 0
#endif

// Two values in one word; the first is in the lower half.
BERTH_BOTH std::uint32_t f16x2(float first, float second) noexcept {
#if BERTH_HAS_F16X2_INSTRUCTIONS
  std::uint32_t made;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(made) : "f"(second), "f"(first));
  return made;
#else
  return encoded<float16, false>(first) | encoded<float16, false>(second) << 16;
#endif
}

BERTH_BOTH std::uint32_t bf16x2(float first, float second) noexcept {
#if BERTH_HAS_F16X2_INSTRUCTIONS
  std::uint32_t made;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(made) : "f"(second), "f"(first));
  return made;
#else
  return encoded<bfloat16, false>(first) | encoded<bfloat16, false>(second) << 16;
#endif
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
#define BERTH_HAS_F8_INSTRUCTIONS 1
#else
#define BERTH_HAS_F8_INSTRUCTIONS 0
#endif

// Two bytes in the lower half of a word; overflow saturates to the largest finite value.
BERTH_BOTH std::uint32_t e4m3x2(float first, float second) noexcept {
#if BERTH_HAS_F8_INSTRUCTIONS
  std::uint16_t made;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(made) : "f"(second), "f"(first));
  return made;
#else
  return encoded<float8_e4m3, true>(first) | encoded<float8_e4m3, true>(second) << 8;
#endif
}

BERTH_BOTH std::uint32_t e5m2x2(float first, float second) noexcept {
#if BERTH_HAS_F8_INSTRUCTIONS
  std::uint16_t made;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(made) : "f"(second), "f"(first));
  return made;
#else
  return encoded<float8_e5m2, true>(first) | encoded<float8_e5m2, true>(second) << 8;
#endif
}

// Two f16 as two bytes in the lower half of a word; overflow saturates to the largest finite value.
BERTH_BOTH std::uint32_t e4m3x2_of_f16x2(std::uint32_t halves) noexcept {
#if BERTH_HAS_F8_INSTRUCTIONS
  std::uint16_t made;
  asm("cvt.rn.satfinite.e4m3x2.f16x2 %0, %1;" : "=h"(made) : "r"(halves));
  return made;
#else
  const auto one = [](std::uint32_t half) {
    return encoded<float8_e4m3, true>(static_cast<float>(float16::decode(static_cast<std::uint16_t>(half))));
  };
  return one(halves & 0xffffU) | one(halves >> 16) << 8;
#endif
}

// The lower two bytes of a word as two f16.
BERTH_BOTH std::uint32_t f16x2_of_e4m3x2(std::uint32_t bytes) noexcept {
#if BERTH_HAS_F8_INSTRUCTIONS
  std::uint32_t made;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(made) : "h"(static_cast<std::uint16_t>(bytes)));
  return made;
#else
  const auto one = [](std::uint32_t byte) {
    return encoded<float16, false>(static_cast<float>(float8_e4m3::decode(static_cast<std::uint8_t>(byte & 0xff))));
  };
  return one(bytes) | one(bytes >> 8) << 16;
#endif
}

// The f16 in the lower half of a word.
BERTH_BOTH float f32_of_f16(std::uint32_t half) noexcept {
#ifdef __CUDA_ARCH__
  float made;
  asm("cvt.f32.f16 %0, %1;" : "=f"(made) : "h"(static_cast<std::uint16_t>(half)));
  return made;
#else
  const auto made = static_cast<float>(float16::decode(static_cast<std::uint16_t>(half)));
  return is_nan(made) ? bits_as<float>(0x7fffffffU) : made;
#endif
}

BERTH_BOTH float f32_of_f64(double value) noexcept {
#ifdef __CUDA_ARCH__
  return __double2float_rn(value);
#else
  return static_cast<float>(value);
#endif
}

// Rounds toward zero.
BERTH_BOTH float f32_toward_zero(double value) noexcept {
#ifdef __CUDA_ARCH__
  return __double2float_rz(value);
#else
  const auto nearest = static_cast<float>(value);
  if (is_nan(value) || magnitude(nearest) == 0) return nearest;
  const bool larger = value < 0 ? static_cast<double>(nearest) < value : static_cast<double>(nearest) > value;
  const bool beyond = larger && magnitude(nearest) == std::numeric_limits<float>::infinity();
  if (beyond && value - value != 0) return nearest;  // infinity itself
  return larger ? bits_as<float>(bits_as<std::uint32_t>(nearest) - 1) : nearest;
#endif
}

// Rounds toward zero and saturates; NaN becomes 0.
BERTH_BOTH std::int32_t i32_of_f32(float value) noexcept {
#ifdef __CUDA_ARCH__
  std::int32_t made;
  asm("cvt.rzi.s32.f32 %0, %1;" : "=r"(made) : "f"(value));
  return made;
#else
  if (is_nan(value)) return 0;
  if (value <= -2147483648.0F) return std::numeric_limits<std::int32_t>::min();
  if (value >= 2147483648.0F) return std::numeric_limits<std::int32_t>::max();
  return static_cast<std::int32_t>(value);
#endif
}

// Four numbers as signed bytes, saturated.
BERTH_BOTH std::uint32_t i8x4(std::int32_t a, std::int32_t b, std::int32_t c, std::int32_t d) noexcept {
#ifdef __CUDA_ARCH__
  std::uint32_t upper;
  std::uint32_t made;
  asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, %3;" : "=r"(upper) : "r"(d), "r"(c), "r"(0));
  asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, %3;" : "=r"(made) : "r"(b), "r"(a), "r"(upper));
  return made;
#else
  const auto one = [](std::int32_t value) { return static_cast<std::uint32_t>(value < -128 ? -128 : value > 127 ? 127 : value) & 0xff; };
  return one(a) | one(b) << 8 | one(c) << 16 | one(d) << 24;
#endif
}

// The same for unsigned bytes.
BERTH_BOTH std::uint32_t u8x4(std::int32_t a, std::int32_t b, std::int32_t c, std::int32_t d) noexcept {
#ifdef __CUDA_ARCH__
  std::uint32_t upper;
  std::uint32_t made;
  asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(upper) : "r"(d), "r"(c), "r"(0));
  asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(made) : "r"(b), "r"(a), "r"(upper));
  return made;
#else
  const auto one = [](std::int32_t value) { return static_cast<std::uint32_t>(value < 0 ? 0 : value > 255 ? 255 : value); };
  return one(a) | one(b) << 8 | one(c) << 16 | one(d) << 24;
#endif
}

}  // namespace berth::internal::device::cuda::hardware
