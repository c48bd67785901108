// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "berth/export.h"

// A drawing that stands alone: valid XML, in the colours of html/palette.h, whose names are the classes.
//
//     SvgWriter svg(640, 200, "live bytes");
//     svg.rect({0, 0, 10, 20}, "tone-0", "x: 4 KiB");
//     std::string file = svg.take();
//
// Texts and titles are escaped here; classes and paths are ours and are not.
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

  // What a program shows when the pointer rests on it is `title`; its lines are kept.
  SvgWriter& rect(const Area& area, std::string_view classes, std::string_view title = {});
  SvgWriter& line(double x1, double y1, double x2, double y2, std::string_view classes);
  SvgWriter& path(std::string_view steps, std::string_view classes);
  SvgWriter& text(double x, double y, std::string_view classes, std::string_view text);

  std::string take();

 private:
  std::string out_;
};

}  // namespace berth::internal::html
