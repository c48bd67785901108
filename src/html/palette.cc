// SPDX-License-Identifier: Apache-2.0
#include "html/palette.h"

#include <array>
#include <string_view>

#include "base/text.h"

namespace berth::internal::html {

namespace {

struct Colour {
  std::string_view name;
  std::string_view light;
  std::string_view dark;
};

// Text in `ink` is readable (a contrast of at least 4.5) on all of them except `ink`, `muted`, `accent` and
// `warn`.
constexpr std::array kColours = {
    Colour{"ground", "#ffffff", "#14171c"}, Colour{"panel", "#f4f6f8", "#1c2128"},  Colour{"ink", "#1b1f24", "#e8ecf1"},
    Colour{"muted", "#5b6570", "#9aa5b1"},  Colour{"line", "#d3d9df", "#363d47"},   Colour{"accent", "#0b5cad", "#6cb2ff"},
    Colour{"warn", "#b42318", "#ff8f85"},   Colour{"area", "#a9cbee", "#2b5580"},   Colour{"faint", "#c9d0d8", "#3d4652"},
    Colour{"tone-0", "#8fbbe6", "#2f5d8a"}, Colour{"tone-1", "#f3bb82", "#80531f"}, Colour{"tone-2", "#9ed3a6", "#2c663b"},
    Colour{"tone-3", "#ec9f9f", "#853a3a"}, Colour{"tone-4", "#c6b4e6", "#5b4988"}, Colour{"tone-5", "#dccd93", "#655a2a"},
    Colour{"tone-6", "#8dd2d0", "#216265"}, Colour{"tone-7", "#e9abd2", "#7a3a64"},
};

using Pick = std::string_view Colour::*;

std::string properties(Pick pick) {
  std::string out;
  for (const Colour& colour : kColours) out += text::join("--", colour.name, ":", colour.*pick, ";");
  return out;
}

constexpr std::string_view kStroked[] = {"line", "accent", "warn"};

bool is_stroked(std::string_view name) {
  for (const std::string_view one : kStroked)
    if (one == name) return true;
  return false;
}

std::string classes(Pick pick) {
  std::string out;
  for (const Colour& colour : kColours)
    out += is_stroked(colour.name) ? text::join(".", colour.name, "{stroke:", colour.*pick, ";fill:none}")
                                   : text::join(".", colour.name, "{fill:", colour.*pick, "}");
  return out;
}

}  // namespace

std::string_view tone_name(std::size_t tone) { return kColours[kColours.size() - kTones + tone].name; }

std::string report_colours() {
  return text::join(":root{color-scheme:light;", properties(&Colour::light),
                    "}\n@media (prefers-color-scheme:dark){:root{color-scheme:dark;", properties(&Colour::dark),
                    "}}\n:root[data-theme=light]{color-scheme:light;", properties(&Colour::light),
                    "}\n:root[data-theme=dark]{color-scheme:dark;", properties(&Colour::dark), "}\n");
}

std::string drawing_colours() {
  return text::join(classes(&Colour::light), "\n@media (prefers-color-scheme:dark){", classes(&Colour::dark), "}\n");
}

}  // namespace berth::internal::html
