// SPDX-License-Identifier: Apache-2.0
#include "plan/report/picture.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "html/coverage.h"

namespace berth::internal::plan {

namespace {

constexpr std::array<std::string_view, 4> kShades = {"█", "▒", "▓", "░"};
constexpr std::array<std::string_view, 9> kLevels = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::size_t kLeastInner = 8;  // below this width the labels are left out

class Picture {
 public:
  Picture(const html::AddressMap& map, std::size_t columns, std::size_t rows)
      : map_(map), top_(text::bytes(map.bytes)), gutter_(std::max(top_.size(), std::size_t{4})), rows_(rows) {
    labelled_ = columns >= gutter_ + 2 + kLeastInner;
    inner_ = labelled_ ? columns - gutter_ - 2 : columns;
  }

  std::string draw() {
    draw_live();
    draw_rows();
    if (labelled_) draw_axis();
    return std::move(out_);
  }

 private:
  // Writes the label of a line, and the border between it and the drawing.
  void begin_line(std::string_view label, std::string_view border) {
    if (!labelled_) return;
    out_.append(gutter_ - label.size(), ' ');
    out_ += text::join(label, " ", border);
  }

  // Strips trailing spaces.
  void end_line() {
    while (out_.ends_with(' ')) out_.pop_back();
    out_ += '\n';
  }

  void draw_live() {
    begin_line("live", " ");
    for (const std::uint64_t bytes : html::live_columns(map_, inner_)) out_ += kLevels[level(bytes)];
    end_line();
  }

  // Rounded up, so that few bytes differ from none.
  std::size_t level(std::uint64_t bytes) const {
    if (bytes == 0) return 0;
    const double share = static_cast<double>(bytes) / static_cast<double>(std::max<std::uint64_t>(map_.bytes, 1));
    return std::min(static_cast<std::size_t>(share * 8 + 0.999), kLevels.size() - 1);
  }

  void draw_rows() {
    html::Grid grid = html::coverage(map_, inner_, rows_);
    const std::vector<std::uint8_t> tones = tones_of(grid);
    for (std::size_t row = rows_; row-- > 0;) {
      begin_line(row + 1 == rows_ ? top_ : row == 0 ? "0 B" : "", row + 1 == rows_ || row == 0 ? "┤" : "│");
      for (std::size_t column = 0; column < inner_; ++column) out_ += shade(grid.at(column, row), tones);
      end_line();
    }
  }

  static bool has_shade(const html::Cell& cell) { return cell.most != 0 && cell.covered >= 0.5; }

  // Tones of the boxes that have a cell, which are few of a million. Cells then name these boxes by their position.
  std::vector<std::uint8_t> tones_of(html::Grid& grid) const {
    std::map<std::size_t, std::size_t> positions;
    for (const html::Cell& cell : grid.cells)
      if (has_shade(cell)) positions.emplace(cell.box, 0);
    std::vector<html::MapBox> boxes;
    for (auto& [box, position] : positions) {
      position = boxes.size();
      boxes.push_back(map_.boxes[box]);
    }
    for (html::Cell& cell : grid.cells)
      if (has_shade(cell)) cell.box = positions.at(cell.box);
    return html::box_tones(boxes, kShades.size());
  }

  static std::string_view shade(const html::Cell& cell, const std::vector<std::uint8_t>& tones) {
    if (cell.most == 0) return " ";
    return has_shade(cell) ? kShades[tones[cell.box]] : "·";
  }

  void draw_axis() {
    begin_line("", "└");
    for (std::size_t i = 0; i < inner_; ++i) out_ += "─";
    end_line();
    const std::string left = text::join("step ", map_.begin);
    const std::string right = std::to_string(map_.end);
    begin_line("", " ");
    out_ += left.substr(0, inner_);
    if (left.size() + right.size() < inner_) out_.append(inner_ - left.size() - right.size(), ' ') += right;
    end_line();
  }

  const html::AddressMap& map_;
  std::string top_;
  std::size_t gutter_;
  std::size_t rows_;
  std::size_t inner_ = 0;
  bool labelled_ = true;
  std::string out_;
};

}  // namespace

std::string draw_picture(const html::AddressMap& map, std::size_t columns, std::size_t rows) {
  if (columns == 0 || rows == 0) return {};
  return Picture(map, columns, rows).draw();
}

}  // namespace berth::internal::plan
