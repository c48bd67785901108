// SPDX-License-Identifier: Apache-2.0
#include "copy/kernels/arm_bf16.h"

#if defined(__aarch64__)

#include <arm_neon.h>

#include <cstdint>
#include <cstring>

#include "copy/kernels/kernels.h"

// Lets the assembler know the instruction, in this function alone. Compilers agree on all but a sign.
#if defined(__clang__)
#define BERTH_WITH_BF16 __attribute__((target("bf16")))
#else
#define BERTH_WITH_BF16 __attribute__((target("+bf16")))
#endif

namespace berth {

namespace {

// Written as assembly, because what compilers call it differs between them.
BERTH_WITH_BF16 inline uint16x8_t narrow(float32x4_t low, float32x4_t high) noexcept {
  uint16x8_t out;
  asm("bfcvtn %0.4h, %1.4s\n\tbfcvtn2 %0.8h, %2.4s" : "=&w"(out) : "w"(low), "w"(high));
  return out;
}

BERTH_WITH_BF16 inline float32x4_t load(const std::byte* from) noexcept {
  return vreinterpretq_f32_u8(vld1q_u8(reinterpret_cast<const std::uint8_t*>(from)));
}
BERTH_WITH_BF16 inline void store(uint16x8_t v, std::byte* to) noexcept {
  vst1q_u8(reinterpret_cast<std::uint8_t*>(to), vreinterpretq_u8_u16(v));
}

BERTH_WITH_BF16 inline void cast_block(const std::byte* source, std::byte* target) noexcept {
  const uint16x8_t first = narrow(load(source), load(source + 16));
  const uint16x8_t second = narrow(load(source + 32), load(source + 48));
  store(first, target);
  store(second, target + 16);
}

}  // namespace

// In the order of cast_row in simd.cc.
BERTH_WITH_BF16 void cast_f32_to_bf16_on_arm(const std::byte* source, std::byte* target, std::size_t count) noexcept {
  constexpr std::size_t kBlock = 16;
  if (count >= kManyElements) {
    const std::size_t half = count / (2 * kBlock) * kBlock;
    for (std::size_t i = 0; i < half; i += kBlock) {
      cast_block(source + i * 4, target + i * 2);
      cast_block(source + (half + i) * 4, target + (half + i) * 2);
    }
    count -= 2 * half;
    source += 2 * half * 4;
    target += 2 * half * 2;
  }
  for (; count >= kBlock; count -= kBlock, source += kBlock * 4, target += kBlock * 2) cast_block(source, target);
  if (count == 0) return;
  std::byte last[kBlock * 4] = {};
  std::byte done[kBlock * 2];
  std::memcpy(last, source, count * 4);
  cast_block(last, done);
  std::memcpy(target, done, count * 2);
}

}  // namespace berth

#else

namespace berth {

void cast_f32_to_bf16_on_arm(const std::byte*, std::byte*, std::size_t) noexcept {}

}  // namespace berth

#endif
