// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "berth/export.h"
#include "page/address_map.h"

// A report as one file that asks nothing of a network: style, script and data are inside. Light and dark, and all of it can be reached by
// keyboard. Parts appear in the order in which they are added:
//
//     HtmlPage page("a plan", "resnet50");
//     page.figures({{"peak", "1.5 MiB"}}).map(map).table(strategies);
//     std::string file = page.take();
//
// Everything that is added is escaped here.
namespace berth::page {

// One number or word that matters, in large type.
struct Figure {
  std::string label;
  std::string value;
  std::string hint = {};  // in small type below
};

struct Column {
  std::string heading;
  bool number = false;  // to the right, and sorted as a number
};

// Sorted by `key` where there is one, by `text` otherwise.
struct TableCell {
  std::string text = {};
  std::string key = {};
};
BERTH_EXPORT TableCell bytes_cell(std::uint64_t bytes);

struct Table {
  std::string heading;
  std::vector<Column> columns;
  std::vector<std::vector<TableCell>> rows = {};
  std::string note = {};  // below it
};

class BERTH_EXPORT HtmlPage {
 public:
  HtmlPage(std::string_view title, std::string_view subtitle);

  HtmlPage& figures(const std::vector<Figure>& figures);
  HtmlPage& table(const Table& table);
  HtmlPage& map(const AddressMap& map);
  HtmlPage& paragraph(std::string_view text);

  std::string take();

 private:
  void row(const Table& table, const std::vector<TableCell>& cells);

  std::string out_;
};

}  // namespace berth::page
