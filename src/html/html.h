// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "berth/export.h"
#include "html/address_map.h"
#include "html/range_map.h"
#include "html/timeline.h"

// A report as one file that asks nothing of a network: style, script and data are inside. Light and dark, and all of it can be reached by
// keyboard. Parts appear in the order in which they are added:
//
//     HtmlPage page("a plan", "resnet50");
//     page.figures({{"peak", "1.5 MiB"}}).timeline(live).map(map).table(strategies);
//     std::string file = page.take();
//
// Figures of the same steps move together. Everything that is added is escaped here.
namespace berth::internal::html {

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

// A piece of a bar, as a share of the whole cell.
struct BarPart {
  double share = 0;
  std::string_view colour = {};  // of html/palette.h
  std::string title = {};        // shown when the pointer rests on it
};

// Sorted by `key` where there is one, by `text` otherwise.
struct TableCell {
  std::string text = {};
  std::string key = {};
  std::vector<BarPart> bar = {};  // instead of the text, which is then for those who do not see it
};
BERTH_EXPORT TableCell bytes_cell(std::uint64_t bytes);
BERTH_EXPORT TableCell count_cell(std::uint64_t count);

// 1234567 as 1,234,567.
BERTH_EXPORT std::string grouped(std::uint64_t count);

struct Table {
  std::string heading;
  std::vector<Column> columns;
  std::vector<std::vector<TableCell>> rows = {};
  std::string note = {};    // below it
  bool searchable = false;  // with a field to search its rows
};

class BERTH_EXPORT HtmlPage {
 public:
  HtmlPage(std::string_view title, std::string_view subtitle);

  HtmlPage& figures(const std::vector<Figure>& figures);
  HtmlPage& table(const Table& table);
  HtmlPage& timeline(const Timeline& timeline);
  HtmlPage& map(const AddressMap& map);
  HtmlPage& range(const RangeMap& map, const std::vector<TimelineGroup>& legend);
  HtmlPage& paragraph(std::string_view text);

  std::string take();

 private:
  void row(const Table& table, const std::vector<TableCell>& cells);
  void canvas(std::string_view label, std::string_view keys, const std::string& json);

  std::string out_;
};

}  // namespace berth::internal::html
