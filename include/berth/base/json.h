// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <vector>

#include "berth/export.h"

// The one JSON writer. It appends to a string as it is told, so that nothing is built twice:
//
//     JsonWriter json;
//     json.begin_object().member("device", "cpu:0").member("bytes", 4096).end_object();
//     std::string text = json.take();      // {"device":"cpu:0","bytes":4096}
//
// Whatever bytes a name holds, the output is valid JSON in valid UTF-8: control characters are escaped and bytes that are
// not UTF-8 become U+FFFD. Numbers that JSON lacks (NaN, infinities) become null. Calls must nest properly: a value where a
// key is due, or an end that does not match, is a programming error and asserts. Not for sharing between threads.
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

  // A whole JSON value that another writer made.
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
    bool key_written = false;  // an object's key waits for its value
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

}  // namespace berth
