// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "berth/export.h"

// Escaping of untrusted names in reports. A value may be called `</script>`, contain control characters, or not
// be UTF-8 at all. Pure functions; any thread.
namespace berth::internal::html {

// For text and quoted attributes, in HTML and in XML: control characters and invalid bytes become \xNN, and
// names longer than `most` bytes are truncated.
BERTH_EXPORT std::string escaped(std::string_view name, std::size_t most = 256);

// For JSON inside a <script>: the same data without a '<', where what JsonWriter escaped, which would not be seen, is
// visible \xNN, for the script shows names as they are. REQUIRES: a JsonWriter wrote `json`.
BERTH_EXPORT std::string in_script(std::string_view json);

}  // namespace berth::internal::html
