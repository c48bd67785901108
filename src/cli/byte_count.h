// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

// Byte counts as options give them.
namespace berth::internal::cli {

// Parses "64KiB". Throws an ArgumentError that names the option.
std::uint64_t parse_byte_count(const std::string& text, const char* option);

}  // namespace berth::internal::cli
