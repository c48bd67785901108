// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace berth::internal::file {

// The sum that zip archives keep of each member. Goes on from `sum`, that of the bytes before; 0 at the start.
std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t sum = 0) noexcept;

}  // namespace berth::internal::file
