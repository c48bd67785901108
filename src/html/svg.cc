// SPDX-License-Identifier: Apache-2.0
#include "html/svg.h"

#include <utility>

#include "base/text.h"
#include "html/escape.h"
#include "html/number.h"
#include "html/palette.h"

namespace berth::internal::html {

namespace {

constexpr std::string_view kDrawingStyle = R"css(
text{font:12px system-ui,sans-serif}
.title{font-weight:600;font-size:15px}
.end{text-anchor:end}
.middle{text-anchor:middle}
.box{stroke:#000;stroke-width:.5;stroke-opacity:.45}
.dash{stroke-dasharray:6 4}
)css";

std::string attribute(std::string_view name, double value) {
  return berth::internal::text::join(" ", name, "=\"", decimal(value, 2), "\"");
}

// Line by line, because `escaped` would also escape line ends.
std::string escaped_lines(std::string_view lines) {
  std::string out;
  for (;;) {
    const std::size_t end = lines.find('\n');
    out += escaped(lines.substr(0, end), 1024);
    if (end == std::string_view::npos) return out;
    out += '\n';
    lines.remove_prefix(end + 1);
  }
}

}  // namespace

SvgWriter::SvgWriter(double width, double height, std::string_view label) {
  const std::string size = berth::internal::text::join(decimal(width, 2), " ", decimal(height, 2));
  out_ = berth::internal::text::join("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ",
                                     size, "\"", attribute("width", width), attribute("height", height), " role=\"img\" aria-label=\"",
                                     escaped(label), "\">\n<style>", kDrawingStyle, drawing_colours(), "</style>\n");
  rect({0, 0, width, height}, "ground");
}

SvgWriter& SvgWriter::rect(const Area& area, std::string_view classes, std::string_view title) {
  out_ += berth::internal::text::join("<rect", attribute("x", area.x), attribute("y", area.y), attribute("width", area.width),
                                      attribute("height", area.height), " class=\"", classes, "\"");
  out_ += title.empty() ? "/>\n" : berth::internal::text::join("><title>", escaped_lines(title), "</title></rect>\n");
  return *this;
}

SvgWriter& SvgWriter::line(double x1, double y1, double x2, double y2, std::string_view classes) {
  out_ += berth::internal::text::join("<line", attribute("x1", x1), attribute("y1", y1), attribute("x2", x2), attribute("y2", y2),
                                      " class=\"", classes, "\"/>\n");
  return *this;
}

SvgWriter& SvgWriter::path(std::string_view steps, std::string_view classes) {
  out_ += berth::internal::text::join("<path d=\"", steps, "\" class=\"", classes, "\"/>\n");
  return *this;
}

SvgWriter& SvgWriter::text(double x, double y, std::string_view classes, std::string_view text) {
  out_ +=
      berth::internal::text::join("<text", attribute("x", x), attribute("y", y), " class=\"", classes, "\">", escaped(text), "</text>\n");
  return *this;
}

std::string SvgWriter::take() {
  out_ += "</svg>\n";
  return std::exchange(out_, {});
}

}  // namespace berth::internal::html
