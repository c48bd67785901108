// SPDX-License-Identifier: Apache-2.0
#include "html/coverage.h"

#include <algorithm>
#include <cmath>

namespace berth::internal::html {

namespace {

// A half-open range in cells of one axis.
struct Span {
  double begin;
  double end;

  std::size_t first(std::size_t cells) const { return std::min(static_cast<std::size_t>(begin), cells); }
  std::size_t last(std::size_t cells) const { return std::min(static_cast<std::size_t>(std::ceil(end)), cells); }
  double inside(std::size_t cell) const {
    const auto low = static_cast<double>(cell);
    return std::max(0.0, std::min(end, low + 1) - std::max(begin, low));
  }
};

double scale(std::size_t cells, std::uint64_t length) {
  return static_cast<double>(cells) / static_cast<double>(std::max<std::uint64_t>(length, 1));
}

class Painter {
 public:
  Painter(const AddressMap& map, std::size_t columns, std::size_t rows)
      : map_(map), grid_{columns, rows, std::vector<Cell>(columns * rows)} {}

  void paint(std::size_t i) {
    const MapBox& box = map_.boxes[i];
    const Span time = span(box.begin - map_.begin, box.end - box.begin, scale(grid_.columns, map_.end - map_.begin));
    const Span addresses = span(box.offset, box.bytes, scale(grid_.rows, map_.bytes));
    for (std::size_t row = addresses.first(grid_.rows); row < addresses.last(grid_.rows); ++row)
      for (std::size_t column = time.first(grid_.columns); column < time.last(grid_.columns); ++column)
        cover(grid_.cells[row * grid_.columns + column], i, time.inside(column) * addresses.inside(row));
  }

  Grid take() { return std::move(grid_); }

 private:
  static Span span(std::uint64_t begin, std::uint64_t length, double per_unit) {
    const double first = static_cast<double>(begin) * per_unit;
    return {first, first + static_cast<double>(length) * per_unit};
  }

  static void cover(Cell& cell, std::size_t box, double share) {
    cell.covered += share;
    if (share <= cell.most) return;
    cell.most = share;
    cell.box = box;
  }

  const AddressMap& map_;
  Grid grid_;
};

}  // namespace

Grid coverage(const AddressMap& map, std::size_t columns, std::size_t rows, std::span<const std::uint8_t> chosen) {
  Painter painter(map, columns, rows);
  for (std::size_t i = 0; i < map.boxes.size(); ++i)
    if (chosen.empty() || chosen[i] != 0) painter.paint(i);
  return painter.take();
}

std::vector<std::uint64_t> live_columns(const AddressMap& map, std::size_t columns) {
  std::vector<std::uint64_t> most(columns, 0);
  const std::vector<LivePoint> points = live_bytes(map.boxes);
  const double per_step = scale(columns, map.end - map.begin);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::uint64_t until = i + 1 < points.size() ? points[i + 1].step : map.end;
    const Span span{static_cast<double>(points[i].step - map.begin) * per_step, static_cast<double>(until - map.begin) * per_step};
    for (std::size_t column = span.first(columns); column < span.last(columns); ++column)
      most[column] = std::max(most[column], points[i].bytes);
  }
  return most;
}

}  // namespace berth::internal::html
