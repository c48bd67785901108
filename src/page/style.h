// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

// How the parts of page/html.h look, in the colours of page/palette.h.
namespace berth::page {

extern const std::string_view kStyle;

}  // namespace berth::page
