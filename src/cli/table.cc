// SPDX-License-Identifier: Apache-2.0
#include "cli/table.h"

#include <algorithm>

#include "cli/output.h"

namespace berth::internal::cli {

std::size_t display_width(std::string_view text) noexcept {
  std::size_t width = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      i = std::min(text.find('m', i), text.size());
      continue;
    }
    width += (static_cast<unsigned char>(text[i]) & 0xc0) != 0x80 ? 1 : 0;  // not a UTF-8 continuation
  }
  return width;
}

std::string Table::to_string() const {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    std::size_t width = display_width(columns_[c].title);
    for (const auto& row : rows_) width = std::max(width, display_width(row[c]));
    widths.push_back(width);
  }
  std::string out;
  const auto put_row = [&](const auto& cell_at) {
    std::string line = " ";
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      const std::string cell = cell_at(c);
      const std::string gap(widths[c] - display_width(cell), ' ');
      line += ' ';
      line += columns_[c].align == Align::right ? gap + cell : cell + gap;
      line += ' ';
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  };
  put_row([&](std::size_t c) { return paint(Mood::quiet, columns_[c].title); });
  for (const auto& row : rows_) put_row([&](std::size_t c) { return row[c]; });
  return out;
}

}  // namespace berth::internal::cli
