// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

// The script and the style sheet of html/html.h. Their sources are in src/html/assets/, and are embedded when
// the library is built (cmake/embed.cmake). The script loads nothing, stores nothing, and inserts text from
// data only as text, never as HTML. Constants; any thread.
namespace berth::internal::html {

extern const std::string_view kScript;  // all files in one scope, in the order of src/CMakeLists.txt
extern const std::string_view kStyle;   // uses the colours of html/palette.h

}  // namespace berth::internal::html
