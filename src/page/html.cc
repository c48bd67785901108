// SPDX-License-Identifier: Apache-2.0
#include "page/html.h"

#include <utility>

#include "base/text.h"
#include "page/escape.h"
#include "page/palette.h"
#include "page/script.h"
#include "page/style.h"

namespace berth::page {

namespace {

constexpr std::string_view kKeys =
    "Drag or arrow keys move, wheel or + and \xe2\x88\x92 zoom (with Shift only time, with Alt only addresses), 0 shows all, N and P go to "
    "the next and "
    "previous box.";

std::string button(std::string_view action, std::string_view label, std::string_view shown) {
  return text::join("<button type=\"button\" data-do=\"", action, "\" aria-label=\"", label, "\">", shown, "</button>");
}

std::string heading_cell(const Column& column) {
  return text::join("<th scope=\"col\"", column.number ? " class=\"number\" data-number" : "", "><button type=\"button\">",
                    escaped(column.heading), "</button></th>");
}

}  // namespace

TableCell bytes_cell(std::uint64_t bytes) { return {text::bytes(bytes), std::to_string(bytes)}; }

HtmlPage::HtmlPage(std::string_view title, std::string_view subtitle) {
  out_ = text::join(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\">\n<title>",
      escaped(title), "</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>\n", page_colours(), kStyle,
      "</style>\n</head>\n<body>\n<header><h1>", escaped(title), "</h1><p>", escaped(subtitle),
      "</p><button type=\"button\" id=\"theme\">Light or dark</button></header>\n<main>\n");
}

HtmlPage& HtmlPage::figures(const std::vector<Figure>& figures) {
  out_ += "<dl class=\"figures\">\n";
  for (const Figure& figure : figures) {
    out_ += text::join("<div><dt>", escaped(figure.label), "</dt><dd>", escaped(figure.value));
    if (!figure.hint.empty()) out_ += text::join("<small>", escaped(figure.hint), "</small>");
    out_ += "</dd></div>\n";
  }
  out_ += "</dl>\n";
  return *this;
}

HtmlPage& HtmlPage::table(const Table& table) {
  out_ += text::join("<section>\n<h2>", escaped(table.heading), "</h2>\n<div class=\"scroll\"><table class=\"sorts\">\n<thead><tr>");
  for (const Column& column : table.columns) out_ += heading_cell(column);
  out_ += "</tr></thead>\n<tbody>\n";
  for (const std::vector<TableCell>& cells : table.rows) row(table, cells);
  out_ += "</tbody>\n</table></div>\n";
  if (!table.note.empty()) out_ += text::join("<p class=\"note\">", escaped(table.note), "</p>\n");
  out_ += "</section>\n";
  return *this;
}

void HtmlPage::row(const Table& table, const std::vector<TableCell>& cells) {
  out_ += "<tr>";
  for (std::size_t i = 0; i < cells.size(); ++i) {
    out_ += table.columns[i].number ? "<td class=\"number\"" : "<td";
    if (!cells[i].key.empty()) out_ += text::join(" data-key=\"", escaped(cells[i].key), "\"");
    out_ += text::join(">", escaped(cells[i].text), "</td>");
  }
  out_ += "</tr>\n";
}

HtmlPage& HtmlPage::map(const AddressMap& map) {
  const std::string title = escaped(map.title);
  out_ += text::join(
      "<section>\n<h2>", title, "</h2>\n<div class=\"map\">\n<div class=\"tools\">", button("closer", "zoom in", "+"),
      button("farther", "zoom out", "\xe2\x88\x92"), button("all", "show all", "all"),
      "<label>find <input type=\"search\" spellcheck=\"false\" placeholder=\"part of a name\"></label><output></output></div>\n");
  out_ += text::join("<div class=\"stage\"><canvas tabindex=\"0\" role=\"application\" aria-roledescription=\"map\" aria-label=\"", title,
                     ": ", map.boxes.size(), " ", escaped(map.noun), ", steps ", map.begin, " to ", map.end, ", ", text::bytes(map.bytes),
                     ". ", kKeys, "\"></canvas><div class=\"tip\" role=\"status\" aria-live=\"polite\" hidden></div></div>\n");
  out_ += text::join("<p class=\"note\">", kKeys, "</p>\n<noscript><p>The map needs scripts; the tables do not.</p></noscript>\n");
  out_ += text::join("<script type=\"application/json\">", in_script(map_json(map)), "</script>\n</div>\n</section>\n");
  return *this;
}

HtmlPage& HtmlPage::paragraph(std::string_view text) {
  out_ += text::join("<p>", escaped(text), "</p>\n");
  return *this;
}

std::string HtmlPage::take() {
  out_ += text::join("</main>\n<script>\n(() => {\n'use strict';\n", kPageScript, kViewScript, kMapScript,
                     "start();\n})();\n</script>\n</body>\n</html>\n");
  return std::exchange(out_, {});
}

}  // namespace berth::page
