// SPDX-License-Identifier: Apache-2.0
#include "html/map_svg.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/text.h"
#include "html/coverage.h"
#include "html/number.h"
#include "html/palette.h"
#include "html/svg.h"

namespace berth::internal::html {

namespace {

constexpr double kWidth = 960;
constexpr double kGutter = 84;  // left of the drawing, for the labels of addresses
constexpr double kMargin = 16;
constexpr double kInner = kWidth - kGutter - kMargin;
constexpr double kStripTop = 36;
constexpr double kStrip = 56;
constexpr double kMapTop = kStripTop + kStrip + 12;
constexpr double kMapHeight = 320;
constexpr double kPanel = kMapTop + kMapHeight + 52;
constexpr double kShadowCell = 4;  // px

std::string coordinate(double value) { return decimal(value, 2); }

double share(std::uint64_t part, std::uint64_t whole) {
  return static_cast<double>(part) / static_cast<double>(std::max<std::uint64_t>(whole, 1));
}

class Panel {
 public:
  Panel(SvgWriter& svg, const AddressMap& map, double top) : svg_(svg), map_(map), top_(top) {}

  void draw() {
    svg_.text(kGutter, top_ + 24, "ink title", map_.title);
    draw_strip();
    draw_boxes();
    draw_marks();
    draw_axes();
  }

 private:
  double x(std::uint64_t step) const { return kGutter + kInner * share(step - map_.begin, map_.end - map_.begin); }
  double bottom() const { return top_ + kMapTop + kMapHeight; }

  Area area(const MapBox& box) const {
    const double height = kMapHeight * share(box.bytes, map_.bytes);
    return {x(box.begin), bottom() - kMapHeight * share(box.offset, map_.bytes) - height,
            kInner * share(box.end - box.begin, map_.end - map_.begin), height};
  }

  bool is_visible(const MapBox& box) const {
    const Area drawn = area(box);
    return std::min(drawn.width, drawn.height) >= 0.5 && drawn.width * drawn.height >= 4;
  }

  void draw_strip() {
    const double base = top_ + kStripTop + kStrip;
    const std::vector<std::uint64_t> live = live_columns(map_, static_cast<std::size_t>(kInner));
    std::string path = text::join("M", coordinate(kGutter), " ", coordinate(base));
    std::uint64_t before = 0;
    for (std::size_t i = 0; i < live.size(); ++i) {
      if (live[i] == before) continue;
      path += text::join("H", coordinate(kGutter + static_cast<double>(i)), "V", coordinate(base - kStrip * share(live[i], map_.bytes)));
      before = live[i];
    }
    svg_.path(text::join(path, "H", coordinate(kGutter + kInner), "V", coordinate(base), "Z"), "area");
    svg_.text(kGutter - 8, base - kStrip / 2 + 4, "muted end", "live");
  }

  void draw_boxes() {
    const std::vector<std::uint8_t> tones = box_tones(map_.boxes, kTones);
    std::vector<std::uint8_t> hidden(map_.boxes.size(), 0);
    if (map_.boxes.size() > kDrawAll)
      std::ranges::transform(map_.boxes, hidden.begin(), [&](const MapBox& box) { return !is_visible(box); });
    const auto left_out = static_cast<std::size_t>(std::ranges::count(hidden, 1));
    if (left_out != 0) draw_shadow(hidden);
    for (std::size_t i = 0; i < map_.boxes.size(); ++i)
      if (hidden[i] == 0) draw_box(map_.boxes[i], tones[i]);
    if (left_out != 0) draw_caption(left_out);
  }

  void draw_box(const MapBox& box, std::uint8_t tone) { svg_.rect(area(box), text::join("tone-", tone, " box"), box_text(map_, box)); }

  // As runs of cells, so that the file stays small for any number of boxes.
  void draw_shadow(const std::vector<std::uint8_t>& hidden) {
    const Grid grid =
        coverage(map_, static_cast<std::size_t>(kInner / kShadowCell), static_cast<std::size_t>(kMapHeight / kShadowCell), hidden);
    const double width = kInner / static_cast<double>(grid.columns);
    for (std::size_t row = 0; row < grid.rows; ++row) {
      for (std::size_t column = 0; column < grid.columns;) {
        std::size_t end = column;
        while (end < grid.columns && grid.at(end, row).covered >= 0.5) ++end;
        if (end > column)
          svg_.rect({kGutter + static_cast<double>(column) * width, bottom() - static_cast<double>(row + 1) * kShadowCell,
                     static_cast<double>(end - column) * width, kShadowCell},
                    "faint");
        column = end + 1;
      }
    }
  }

  void draw_caption(std::size_t left_out) {
    svg_.text(kGutter, bottom() + 40, "muted",
              text::join(left_out, " of ", map_.boxes.size(), " ", map_.noun, " are too small to be seen and are drawn together in grey."));
  }

  void draw_marks() {
    for (const MapMark& mark : map_.marks) {
      const double y = bottom() - kMapHeight * share(std::min(mark.bytes, map_.bytes), map_.bytes);
      svg_.line(kGutter, y, kGutter + kInner, y, "warn dash");
      svg_.text(kGutter + kInner - 4, y + 14, "ink end", text::join(mark.label, " ", text::bytes(mark.bytes)));
    }
  }

  void draw_axes() {
    svg_.line(kGutter, top_ + kMapTop, kGutter, bottom(), "line");
    svg_.line(kGutter, bottom(), kGutter + kInner, bottom(), "line");
    svg_.text(kGutter - 8, top_ + kMapTop + 10, "muted end", text::bytes(map_.bytes));
    svg_.text(kGutter - 8, bottom(), "muted end", "0 B");
    svg_.text(kGutter, bottom() + 18, "muted", text::join("step ", map_.begin));
    svg_.text(kGutter + kInner, bottom() + 18, "muted end", text::join("step ", map_.end));
  }

  SvgWriter& svg_;
  const AddressMap& map_;
  double top_;
};

}  // namespace

std::string maps_svg(std::span<const AddressMap> maps, std::string_view label) {
  SvgWriter svg(kWidth, maps.empty() ? 60 : kPanel * static_cast<double>(maps.size()), label);
  if (maps.empty()) svg.text(kMargin, 36, "muted", text::join(label, ": there is nothing to draw"));
  for (std::size_t i = 0; i < maps.size(); ++i) Panel(svg, maps[i], kPanel * static_cast<double>(i)).draw();
  return svg.take();
}

}  // namespace berth::internal::html
