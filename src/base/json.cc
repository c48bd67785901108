// SPDX-License-Identifier: Apache-2.0
#include "berth/base/json.h"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "base/text.h"

namespace berth {

using namespace internal;

JsonWriter& JsonWriter::open(char kind) {
  before_value();
  out_ += kind;
  levels_.push_back({kind});
  return *this;
}

JsonWriter& JsonWriter::close(char kind) {
  assert(!levels_.empty() && levels_.back().kind == (kind == '}' ? '{' : '[') && !levels_.back().key_written);
  const bool was_empty = levels_.back().empty;
  levels_.pop_back();
  if (!was_empty) new_line();
  out_ += kind;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  assert(!levels_.empty() && levels_.back().kind == '{' && !levels_.back().key_written);
  Level& level = levels_.back();
  if (!level.empty) out_ += ',';
  level.empty = false;
  new_line();
  append_quoted(name);
  out_ += style_ == Style::pretty ? ": " : ":";
  level.key_written = true;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  before_value();
  append_quoted(text);
  return *this;
}

JsonWriter& JsonWriter::value(double number) {
  if (!std::isfinite(number)) return null();
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, number);  // the shortest text that round-trips
  return raw(std::string_view(digits, static_cast<std::size_t>(end.ptr - digits)));
}

JsonWriter& JsonWriter::raw(std::string_view text) {
  before_value();
  out_ += text;
  return *this;
}

std::string JsonWriter::take() {
  assert(levels_.empty());
  return std::exchange(out_, {});
}

void JsonWriter::before_value() {
  if (levels_.empty()) return;
  Level& level = levels_.back();
  if (level.kind == '{') {
    assert(level.key_written);
    level.key_written = false;
    return;
  }
  if (!level.empty) out_ += ',';
  level.empty = false;
  new_line();
}

void JsonWriter::new_line() {
  if (style_ == Style::compact) return;
  out_ += '\n';
  out_.append(2 * levels_.size(), ' ');
}

namespace {

void append_unit(std::string& out, std::uint32_t unit) {
  constexpr char kHex[] = "0123456789abcdef";
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += kHex[unit >> shift & 15];
}

// Most of any text: it is taken in runs.
bool stands_as_it_is(char c) noexcept { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; }

// What would not be seen where the text is shown is escaped: in UTF-16, with two escapes past the first plane.
void append_character(std::string& out, std::string_view character) {
  const std::uint32_t code = text::code_point(character);
  if (!text::is_unseen(code)) {
    out += character;
  } else if (code < 0x10000) {
    append_unit(out, code);
  } else {
    append_unit(out, 0xd800 + ((code - 0x10000) >> 10));
    append_unit(out, 0xdc00 + ((code - 0x10000) & 0x3ff));
  }
}

}  // namespace

void JsonWriter::append_quoted(std::string_view text) {
  out_ += '"';
  while (!text.empty()) {
    const auto plain = static_cast<std::size_t>(std::ranges::find_if_not(text, stands_as_it_is) - text.begin());
    out_ += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const auto c = static_cast<unsigned char>(text.front());
    if (c == '"' || c == '\\') {
      out_ += '\\';
      out_ += text.front();
      text.remove_prefix(1);
    } else if (c == '\n') {
      out_ += "\\n";
      text.remove_prefix(1);
    } else {
      const std::size_t length = text::utf8_length(text);
      append_character(out_, length == 0 ? std::string_view("\xef\xbf\xbd") : text.substr(0, length));
      text.remove_prefix(length == 0 ? 1 : length);
    }
  }
  out_ += '"';
}

}  // namespace berth
