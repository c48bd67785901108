// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "berth/export.h"

// The colours of every report, by name, in light and in dark. Tones tell neighbours apart, or kinds of things.
namespace berth::internal::html {

inline constexpr std::size_t kTones = 8;

// "tone-3"
BERTH_EXPORT std::string_view tone_name(std::size_t tone);

// Custom properties --ground, --ink, --tone-0, … for a page whose root may carry data-theme="light" or "dark"; without one the reader's
// system decides.
BERTH_EXPORT std::string page_colours();

// Classes for a drawing that stands alone, in plain colours: many programs that show SVG know no custom properties.
BERTH_EXPORT std::string drawing_colours();

}  // namespace berth::internal::html
