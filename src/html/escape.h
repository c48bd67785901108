// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "berth/export.h"

// Names from outside, made harmless for a page. A value may be called `</script>`, hold control characters, or not be UTF-8 at all.
namespace berth::internal::html {

// As text or as an attribute in quotes, in HTML and in XML: what control characters and broken bytes there are appears as \xNN, and what is
// longer than `most` bytes is cut.
BERTH_EXPORT std::string escaped(std::string_view name, std::size_t most = 256);

// JSON that may stand inside a <script>: the same data, without a '<'. REQUIRES: `json` is valid.
BERTH_EXPORT std::string in_script(std::string_view json);

}  // namespace berth::internal::html
