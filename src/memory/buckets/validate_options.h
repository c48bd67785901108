// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "berth/device/backend.h"

// What `rounded` and `exact` ask of their options, and how they print them.
namespace berth::internal::memory {

// Throws ArgumentError unless it is one, and at most kMaxBytes.
void check_power_of_two(std::string_view strategy, std::string_view option, std::size_t bytes);

// Throws ArgumentError when not even the smallest block is within the limit.
void check_limit(std::string_view strategy, std::size_t limit_bytes, std::size_t least_bytes, const Backend& backend);

// ", at most 8 GiB", or nothing where there is no limit.
std::string limit_text(std::size_t limit_bytes);

}  // namespace berth::internal::memory
