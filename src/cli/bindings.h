// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

// The sizes of symbolic dimensions, as --bind gives them.
namespace berth::internal::cli {

using Bindings = std::map<std::string, std::int64_t, std::less<>>;

// Parses "batch=8", "seq=128". Throws ArgumentError for another form or a negative size, and binding_conflict for a
// dimension with two sizes.
Bindings parse_bindings(const std::vector<std::string>& texts);

}  // namespace berth::internal::cli
