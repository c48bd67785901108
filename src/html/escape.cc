// SPDX-License-Identifier: Apache-2.0
#include "html/escape.h"

#include <charconv>
#include <cstdint>

#include "base/text.h"

namespace berth::internal::html {

namespace {

// Well-formed UTF-8 that XML does not allow.
bool is_noncharacter(std::string_view text) { return text.starts_with("\xef\xbf\xbe") || text.starts_with("\xef\xbf\xbf"); }

std::string_view entity(char c) {
  switch (c) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '"': return "&quot;";
    case '\'': return "&#39;";
    default: return {};
  }
}

// The UTF-16 unit of the escape \uXXXX at the front of JSON.
std::uint32_t unit_at(std::string_view json) {
  std::uint32_t unit = 0;
  std::from_chars(json.data() + 2, json.data() + 6, unit, 16);
  return unit;
}

std::string utf8(std::uint32_t code) {
  const auto next = [&](unsigned shift) { return static_cast<char>(0x80 | (code >> shift & 0x3f)); };
  if (code < 0x80) return {static_cast<char>(code)};
  if (code < 0x800) return {static_cast<char>(0xc0 | code >> 6), next(0)};
  if (code < 0x10000) return {static_cast<char>(0xe0 | code >> 12), next(6), next(0)};
  return {static_cast<char>(0xf0 | code >> 18), next(12), next(6), next(0)};
}

// Removes the escape at the front of JSON, and returns the character that it stands for.
std::string take_escaped(std::string_view& json) {
  std::uint32_t code = unit_at(json);
  json.remove_prefix(6);
  if (code >= 0xd800 && code < 0xdc00 && json.starts_with("\\u")) {
    code = 0x10000 + ((code - 0xd800) << 10) + (unit_at(json) - 0xdc00);
    json.remove_prefix(6);
  }
  return utf8(code);
}

// As a terminal would get it, with the backslashes escaped for JSON.
void append_visible(std::string& out, std::string_view character) {
  for (const char c : text::printable(character)) out += c == '\\' ? std::string_view("\\\\") : std::string_view(&c, 1);
}

}  // namespace

std::string escaped(std::string_view name, std::size_t most) {
  const std::string safe = text::printable(name, most);
  std::string out;
  out.reserve(safe.size());
  for (std::size_t i = 0; i < safe.size(); ++i) {
    const std::string_view known = entity(safe[i]);
    if (!known.empty()) {
      out += known;
    } else if (is_noncharacter(std::string_view(safe).substr(i))) {
      out += "\xef\xbf\xbd";
      i += 2;
    } else {
      out += safe[i];
    }
  }
  return out;
}

std::string in_script(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  while (!json.empty()) {
    if (json.starts_with("\\u")) {
      append_visible(out, take_escaped(json));
    } else if (json.starts_with("\\n")) {
      append_visible(out, "\n");
      json.remove_prefix(2);
    } else if (json[0] == '\\') {
      out += json.substr(0, 2);
      json.remove_prefix(2);
    } else {
      if (json[0] == '<')
        out += "\\u003c";
      else
        out += json[0];
      json.remove_prefix(1);
    }
  }
  return out;
}

}  // namespace berth::internal::html
