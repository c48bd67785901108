// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "berth/export.h"

// Writes a standalone SVG drawing: valid XML, with the colour names of html/palette.h as classes. One thread at
// a time.
//
//     SvgWriter svg(640, 200, "live bytes");
//     svg.rect({0, 0, 10, 20}, "tone-0", "x: 4 KiB");
//     std::string file = svg.take();
//
// Texts and titles are escaped here; classes and paths come from our own code and are not.
namespace berth::internal::html {

struct Area {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
};

class BERTH_EXPORT SvgWriter {
 public:
  SvgWriter(double width, double height, std::string_view label);

  // `title` is the tooltip, and may have several lines.
  SvgWriter& rect(const Area& area, std::string_view classes, std::string_view title = {});
  SvgWriter& line(double x1, double y1, double x2, double y2, std::string_view classes);
  SvgWriter& path(std::string_view steps, std::string_view classes);
  SvgWriter& text(double x, double y, std::string_view classes, std::string_view text);

  std::string take();

 private:
  std::string out_;
};

}  // namespace berth::internal::html
