// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

// The script and the style of html/html.h. They are written as what they are, in src/page/assets/, and embedded when the library is built
// (cmake/embed.cmake). The script loads nothing, keeps nothing, and puts text from data into the page only as text.
namespace berth::internal::html {

extern const std::string_view kScript;  // its files stand in one scope, in the order of src/CMakeLists.txt
extern const std::string_view kStyle;   // in the colours of html/palette.h

}  // namespace berth::internal::html
