// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace berth::internal::file {

// The CRC-32 that zip archives keep of each member. Continues from `sum`, the checksum of the preceding bytes;
// 0 at the start. A pure function.
std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t sum = 0) noexcept;

}  // namespace berth::internal::file
