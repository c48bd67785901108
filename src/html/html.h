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

// An HTML report as one self-contained file that needs no network: style, script and data are inline. It has a
// light and a dark theme, and everything is reachable by keyboard. One thread at a time per report. Parts
// appear in the order in which they are added:
//
//     HtmlReport report("a plan", "resnet50");
//     report.figures({{"peak", "1.5 MiB"}}).timeline(live).map(map).table(strategies);
//     std::string file = report.take();
//
// Figures over the same steps scroll and zoom together. Everything that is added is escaped here.
namespace berth::internal::html {

// A key number or word, in large type.
struct Figure {
  std::string label;
  std::string value;
  std::string hint = {};  // in small type below
};

struct Column {
  std::string heading;
  bool number = false;  // right-aligned, and sorted as a number
};

// A part of a bar, as a share of the whole cell.
struct BarPart {
  double share = 0;
  std::string_view colour = {};  // a name of html/palette.h
  std::string title = {};        // tooltip
};

// Sorted by `key` if it has one, by `text` otherwise.
struct TableCell {
  std::string text = {};
  std::string key = {};
  std::vector<BarPart> bar = {};  // instead of the text, which is then for screen readers
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
  bool searchable = false;  // has a search field for its rows
};

class BERTH_EXPORT HtmlReport {
 public:
  HtmlReport(std::string_view title, std::string_view subtitle);

  HtmlReport& figures(const std::vector<Figure>& figures);
  HtmlReport& table(const Table& table);
  HtmlReport& timeline(const Timeline& timeline);
  HtmlReport& map(const AddressMap& map);
  HtmlReport& range(const RangeMap& map, const std::vector<TimelineGroup>& legend);
  HtmlReport& paragraph(std::string_view text);

  std::string take();

 private:
  void count();  // what it holds, in the thread's allowance
  void row(const Table& table, const std::vector<TableCell>& cells);
  void canvas(std::string_view label, std::string_view keys, const std::string& json);

  std::string out_;
  std::size_t counted_ = 0;  // the capacity of out_ that was taken last
};

}  // namespace berth::internal::html
