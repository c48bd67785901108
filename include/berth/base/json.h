// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <vector>

#include "berth/export.h"

// The JSON writer. It appends each value directly to a string, without an intermediate tree:
//
//     JsonWriter json;
//     json.begin_object().member("device", "cpu:0").member("bytes", 4096).end_object();
//     std::string text = json.take();      // {"device":"cpu:0","bytes":4096}
//
// Whatever bytes a name holds, the output is valid JSON in valid UTF-8: control characters are escaped and
// bytes that are not UTF-8 become U+FFFD. Numbers that JSON lacks (NaN, infinities) become null. Calls must
// nest properly: a value where a key is due, or an end that does not match, is a programming error and asserts.
// A writer is for one thread at a time.
namespace berth {

class BERTH_EXPORT JsonWriter {
 public:
  enum class Style { compact, pretty };

  explicit JsonWriter(Style style = Style::compact) : style_(style) {}

  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name);

  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(const std::string& text) { return value(std::string_view(text)); }
  JsonWriter& value(bool flag) { return raw(flag ? "true" : "false"); }
  JsonWriter& value(double number);
  JsonWriter& value(std::integral auto number) { return raw(std::to_string(number)); }
  JsonWriter& null() { return raw("null"); }

  // A number that is already text. REQUIRES: it is a valid JSON number.
  JsonWriter& number(std::string_view digits) { return raw(digits); }

  // A complete JSON value that another writer produced.
  JsonWriter& json(std::string_view made) { return raw(made); }

  template <class T>
  JsonWriter& member(std::string_view name, const T& v) {
    return key(name).value(v);
  }

  // The text so far; the writer is empty afterwards. REQUIRES: everything opened is closed.
  std::string take();

 private:
  struct Level {
    char kind;  // '{' or '['
    bool empty = true;
    bool key_written = false;  // a key is written and its value is not yet
  };

  JsonWriter& open(char kind);
  JsonWriter& close(char kind);
  JsonWriter& raw(std::string_view text);
  void before_value();
  void new_line();
  void append_quoted(std::string_view text);

  Style style_;
  std::string out_;
  std::vector<Level> levels_;
};

// The JSON text of any value that has `write_json`. berth's types have two output forms and no others:
// `to_string` for people (a member, or a free function for an enum), and `write_json` for programs.
template <class T>
requires requires(const T& value, JsonWriter& json) { value.write_json(json); }
std::string to_json(const T& value) {
  JsonWriter json;
  value.write_json(json);
  return json.take();
}

}  // namespace berth
