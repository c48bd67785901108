// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

// The table format of the command line: a header, columns as wide as their content, numbers right-aligned. The
// caller escapes external names (text::printable).
namespace berth::internal::cli {

inline constexpr const char* kUnknown = "–";  // the cell of a figure that is not known

class Table {
 public:
  enum class Align { left, right };

  struct Column {
    std::string title;
    Align align = Align::left;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // REQUIRES: one cell for each column.
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

  std::string to_string() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// The width of the text in terminal columns: colour codes take none, every other character one.
std::size_t display_width(std::string_view text) noexcept;

}  // namespace berth::internal::cli
