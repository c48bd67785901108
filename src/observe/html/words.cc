// SPDX-License-Identifier: Apache-2.0
#include "observe/html/words.h"

#include <utility>

#include "base/allowance.h"
#include "base/text.h"
#include "html/number.h"

namespace berth::internal::observe {

double share(std::uint64_t part, std::uint64_t whole) { return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole); }

std::string percent(double share) { return html::decimal(100 * share, 1) + " %"; }

html::TableCell percent_cell(double share) { return {percent(share), html::decimal(share, 6)}; }

std::vector<html::TableCell> counted(std::vector<html::TableCell> cells) {
  for (const html::TableCell& cell : cells) base::take(sizeof cell + cell.text.size() + cell.bar.size() * sizeof(html::BarPart));
  return cells;
}

html::TableCell bar_cell(std::uint64_t part, std::uint64_t whole, std::string_view colour) {
  html::TableCell cell{percent(share(part, whole)), std::to_string(part)};
  cell.bar = {{share(part, whole), colour, cell.text}};
  return cell;
}

std::string duration_text(std::uint64_t ns) {
  struct Unit {
    std::string_view name;
    double ns;
  };
  constexpr Unit kUnits[] = {{" d", 86400e9}, {" h", 3600e9}, {" min", 60e9}, {" s", 1e9}, {" ms", 1e6}, {" µs", 1e3}};
  for (const Unit& unit : kUnits) {
    const double value = static_cast<double>(ns) / unit.ns;
    if (value >= 1) return text::join(html::decimal(value, value < 10 ? 2 : value < 100 ? 1 : 0), unit.name);
  }
  return text::join(ns, " ns");
}

}  // namespace berth::internal::observe
