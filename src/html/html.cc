// SPDX-License-Identifier: Apache-2.0
#include "html/html.h"

#include <algorithm>
#include <utility>

#include "base/allowance.h"
#include "base/text.h"
#include "html/assets.h"
#include "html/escape.h"
#include "html/number.h"
#include "html/palette.h"

namespace berth::internal::html {

namespace {

// Allows only inline content: the browser blocks every other request from the report.
constexpr std::string_view kPolicy =
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "img-src data:\">\n";

constexpr std::string_view kTimelineKeys =
    "Click or Tab to it. Drag or arrow keys move, wheel or + and \xe2\x88\x92 zoom, 0 shows all, M goes to the peak, N and P to the next "
    "and previous hill. Areas show the most within a pixel, the line inside them the least.";
constexpr std::string_view kMapKeys =
    "Click or Tab to it. Drag or arrow keys move, wheel or + and \xe2\x88\x92 zoom (with Shift only time, with Alt only addresses), 0 "
    "shows "
    "all, N and P go to the next and previous box.";

constexpr std::string_view kRangeKeys =
    "Click or Tab to it. Drag or arrow keys move, wheel or + and \xe2\x88\x92 zoom, 0 shows all, N and P go to the next and previous "
    "block.";

std::string button(std::string_view action, std::string_view label, std::string_view shown) {
  return text::join("<button type=\"button\" data-do=\"", action, "\" aria-label=\"", label, "\">", shown, "</button>");
}

std::string zoom_buttons() {
  return button("closer", "zoom in", "+") + button("farther", "zoom out", "\xe2\x88\x92") + button("all", "show all", "all");
}

std::string search_field(std::string_view label, std::string_view hint) {
  return text::join("<label>", label, " <input type=\"search\" spellcheck=\"false\" placeholder=\"", hint, "\"></label><output></output>");
}

std::string swatch(std::string_view style, std::string_view name) {
  return text::join("<li><i style=\"background:", style, "\"></i>", escaped(name), "</li>");
}

// From top to bottom, as groups are drawn.
std::string swatches(const std::vector<TimelineGroup>& groups) {
  std::string out;
  for (std::size_t g = groups.size(); g-- > 0;) out += swatch(text::join("var(--", tone_name(groups[g].tone), ")"), groups[g].name);
  return out;
}

std::string legend(const Timeline& timeline) {
  std::string out = swatches(timeline.groups);
  for (const TimelineLine& line : timeline.lines) out += text::join("<li><i class=\"stroke\"></i>", escaped(line.label), "</li>");
  return text::join("<ul class=\"legend\">", out, "</ul>");
}

std::string legend(const RangeMap& map, const std::vector<TimelineGroup>& groups) {
  const auto has = [&](PieceKind kind) {
    return std::ranges::any_of(map.pieces, [&](const RangePiece& piece) { return piece.kind == kind; });
  };
  std::string out = swatches(groups);
  if (has(PieceKind::waiting)) out += swatch("repeating-linear-gradient(135deg,var(--muted) 0 3px,var(--ground) 3px 5px)", "waiting");
  if (has(PieceKind::free) || has(PieceKind::slab)) out += swatch("var(--faint)", "free");
  return text::join("<ul class=\"legend\">", out, swatch("var(--panel)", "without memory"), "</ul>");
}

std::string section(std::string_view title, std::string_view kind, std::string_view tools) {
  return text::join("<section>\n<h2>", title, "</h2>\n<div class=\"figure\" data-kind=\"", kind, "\">\n<div class=\"tools\">", tools,
                    "</div>\n");
}

std::string heading_cell(const Column& column) {
  return text::join("<th scope=\"col\"", column.number ? " class=\"number\" data-number" : "", "><button type=\"button\">",
                    escaped(column.heading), "</button></th>");
}

std::string bar(const TableCell& cell) {
  std::string out = text::join("<span role=\"img\" aria-label=\"", escaped(cell.text), "\">");
  for (const BarPart& part : cell.bar)
    out += text::join("<i style=\"width:", decimal(100 * part.share, 3), "%;background:var(--", part.colour, ")\" title=\"",
                      escaped(part.title), "\"></i>");
  return out + "</span>";
}

}  // namespace

TableCell bytes_cell(std::uint64_t bytes) { return {text::bytes(bytes), std::to_string(bytes)}; }
TableCell count_cell(std::uint64_t count) { return {grouped(count), std::to_string(count)}; }

std::string grouped(std::uint64_t count) {
  std::string digits = std::to_string(count);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, 1, ',');
  return digits;
}

HtmlReport::HtmlReport(std::string_view title, std::string_view subtitle) {
  out_ = text::join("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n", kPolicy,
                    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>", escaped(title),
                    "</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>\n", report_colours(), kStyle,
                    "</style>\n</head>\n<body>\n<header><h1>", escaped(title), "</h1><p>", escaped(subtitle),
                    "</p><button type=\"button\" id=\"theme\">Dark</button></header>\n<main>\n");
}

HtmlReport& HtmlReport::figures(const std::vector<Figure>& figures) {
  out_ += "<dl class=\"figures\">\n";
  for (const Figure& figure : figures) {
    out_ += text::join("<div><dt>", escaped(figure.label), "</dt><dd>", escaped(figure.value));
    if (!figure.hint.empty()) out_ += text::join("<small>", escaped(figure.hint), "</small>");
    out_ += "</dd></div>\n";
  }
  out_ += "</dl>\n";
  count();
  return *this;
}

HtmlReport& HtmlReport::table(const Table& table) {
  out_ += text::join("<section class=\"table\">\n<h2>", escaped(table.heading), "</h2>\n");
  if (table.searchable) out_ += text::join("<div class=\"tools\">", search_field("search", "words, / to begin"), "</div>\n");
  out_ += "<div class=\"scroll\" tabindex=\"0\"><table class=\"sorts\">\n<thead><tr>";
  for (const Column& column : table.columns) out_ += heading_cell(column);
  out_ += "</tr></thead>\n<tbody>\n";
  for (const std::vector<TableCell>& cells : table.rows) {
    row(table, cells);
    count();
  }
  out_ += "</tbody>\n</table></div>\n";
  if (!table.note.empty()) out_ += text::join("<p class=\"note\">", escaped(table.note), "</p>\n");
  out_ += "</section>\n";
  count();
  return *this;
}

void HtmlReport::row(const Table& table, const std::vector<TableCell>& cells) {
  out_ += "<tr>";
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const TableCell& cell = cells[i];
    out_ += !cell.bar.empty() ? "<td class=\"bar\"" : table.columns[i].number ? "<td class=\"number\"" : "<td";
    if (!cell.key.empty()) out_ += text::join(" data-key=\"", escaped(cell.key), "\"");
    out_ += text::join(">", cell.bar.empty() ? escaped(cell.text) : bar(cell), "</td>");
  }
  out_ += "</tr>\n";
}

HtmlReport& HtmlReport::timeline(const Timeline& timeline) {
  const std::string title = escaped(timeline.title);
  const bool counts = timeline.clock == Timeline::Clock::none;
  const std::string steps = counts ? text::join(", ", escaped(timeline.step), "s ", timeline.begin, " to ", timeline.end) : "";
  out_ += section(title, "timeline", zoom_buttons() + button("peak", "go to the peak", "peak") + legend(timeline));
  canvas(title + steps, kTimelineKeys, timeline_json(timeline));
  count();
  return *this;
}

HtmlReport& HtmlReport::map(const AddressMap& map) {
  const std::string title = escaped(map.title);
  out_ += section(title, "map", zoom_buttons() + search_field("find", "part of a name"));
  canvas(text::join(title, ": ", map.boxes.size(), " ", escaped(map.noun), ", ", escaped(map.step), "s ", map.begin, " to ", map.end, ", ",
                    text::bytes(map.bytes)),
         kMapKeys, map_json(map));
  count();
  return *this;
}

HtmlReport& HtmlReport::range(const RangeMap& map, const std::vector<TimelineGroup>& groups) {
  const std::string title = escaped(map.title);
  out_ += section(title, "range", zoom_buttons() + search_field("find", "part of a tag or site") + legend(map, groups));
  canvas(text::join(title, ": ", map.pieces.size(), " pieces"), kRangeKeys, range_json(map));
  count();
  return *this;
}

// The canvas after the tools of a figure, and its data.
void HtmlReport::canvas(std::string_view label, std::string_view keys, const std::string& json) {
  out_ += text::join("<div class=\"stage\"><canvas tabindex=\"0\" role=\"application\" aria-label=\"", label, ". ", keys,
                     "\"></canvas><div class=\"tip\" role=\"status\" aria-live=\"polite\" hidden></div></div>\n<p class=\"note\">", keys,
                     "</p>\n<noscript><p>The drawing needs scripts; the tables do not.</p></noscript>\n<script type=\"application/json\">");
  base::take(2 * json.size());  // with the copy of the next line
  out_ += in_script(json);
  base::give(2 * json.size());
  out_ += "</script>\n</div>\n</section>\n";
}

HtmlReport& HtmlReport::paragraph(std::string_view text) {
  out_ += text::join("<p>", escaped(text), "</p>\n");
  count();
  return *this;
}

// While it grows, it is there twice: each size that it had is counted.
void HtmlReport::count() {
  if (out_.capacity() == counted_) return;
  counted_ = out_.capacity();
  base::take(counted_);
}

std::string HtmlReport::take() {
  out_ += text::join("</main>\n<script>\n(() => {\n'use strict';\nconst toneCount = ", kTones, ";\n", kScript,
                     "})();\n</script>\n</body>\n</html>\n");
  return std::exchange(out_, {});
}

}  // namespace berth::internal::html
