// SPDX-License-Identifier: Apache-2.0
#include "html/escape.h"

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
  for (const char c : json) {
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  }
  return out;
}

}  // namespace berth::internal::html
