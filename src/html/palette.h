// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "berth/export.h"

// The colours of every report, by name, for the light and the dark theme. Tones distinguish neighbours, or
// categories. Constants; any thread.
namespace berth::internal::html {

inline constexpr std::size_t kTones = 8;

// "tone-3"
BERTH_EXPORT std::string_view tone_name(std::size_t tone);

// CSS custom properties --ground, --ink, --tone-0, … for a report whose root may have data-theme="light" or
// "dark"; without it the reader's system decides.
BERTH_EXPORT std::string report_colours();

// CSS classes for a standalone drawing, in plain colours: many SVG viewers do not support custom properties.
BERTH_EXPORT std::string drawing_colours();

}  // namespace berth::internal::html
