// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "berth/device/backend.h"

// Validates the options of `rounded` and `exact`, and formats them. Any thread.
namespace berth::internal::memory {

// Throws ArgumentError unless `bytes` is a power of two, at most kMaxBytes.
void check_power_of_two(std::string_view strategy, std::string_view option, std::size_t bytes);

// Throws ArgumentError when not even the smallest block fits the limit.
void check_limit(std::string_view strategy, std::size_t limit_bytes, std::size_t least_bytes, const Backend& backend);

// ", at most 8 GiB", or an empty string without a limit.
std::string limit_text(std::size_t limit_bytes);

}  // namespace berth::internal::memory
