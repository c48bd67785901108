// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

// f32 to bf16 with the instruction that ARM64 processors since 2020 have for it, and that Highway 1.0 does not know: a third of the work.
// Rounds to nearest even, and makes NaN quiet with the top of its payload, as all conversions here do.
namespace berth {

// REQUIRES: os::cpu_rounds_to_bf16().
void cast_f32_to_bf16_on_arm(const std::byte* source, std::byte* target, std::size_t count) noexcept;

}  // namespace berth
