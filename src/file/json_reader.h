// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "berth/base/error.h"
#include "file/errors.h"

// JSON in files of tensors, read front to back in one pass. Everything is looked at, nothing is kept but what the caller copies; whatever is
// wrong is told with its byte and the tensor that it is about.
namespace berth::files {

namespace lazy = simdjson::ondemand;

// Bytes with room behind them, which the parser reads in large steps.
class JsonText {
 public:
  explicit JsonText(std::size_t bytes) : bytes_(bytes), data_(new char[bytes + simdjson::SIMDJSON_PADDING]) {
    std::fill_n(data_.get() + bytes, simdjson::SIMDJSON_PADDING, '\0');
  }
  explicit JsonText(std::string_view text) : JsonText(text.size()) { std::copy(text.begin(), text.end(), data_.get()); }

  char* data() const noexcept { return data_.get(); }
  std::size_t size() const noexcept { return bytes_; }
  std::string_view view() const noexcept { return {data_.get(), bytes_}; }

 private:
  std::size_t bytes_;
  std::unique_ptr<char[]> data_;  // bytes_ and the room behind them
};

class JsonReader {
 public:
  // The text begins at that byte of the file. Both must outlive the reader.
  JsonReader(const JsonText& text, std::string_view path, std::uint64_t file_offset)
      : text_(text), path_(path), file_offset_(file_offset), has_escapes_(text.view().find('\\') != std::string_view::npos) {}

  // Calls see(key, value) for each member of the object that the text is. The key is decoded, valid UTF-8 without zeros, and good until
  // the reader goes. Then nothing but `padding` may follow.
  template <class See>
  void read(std::string_view padding, See see);

  template <class See>
  void each_member(lazy::value value, std::string_view what, See see) {
    lazy::object object;
    expect(value.get_object().get(object), what, "an object");
    each_member_of(object, see);
  }
  template <class See>
  void each_item(lazy::value value, std::string_view what, See see) {
    lazy::array items;
    expect(value.get_array().get(items), what, "a list");
    for (auto item : items) {
      lazy::value one;
      expect(std::move(item).get(one), what, "a value");
      see(one);
    }
  }

  std::string_view text(lazy::value value, std::string_view what);
  // An exact number, not negative: 1, and neither 1.0 nor 1e0.
  std::uint64_t whole(lazy::value value, std::string_view what);
  // Passes over a value of any kind, which must be well formed all the same.
  void skip(lazy::value value, int depth = 0);

  // What errors are about from now on; empty: no tensor.
  void about(std::string_view name) noexcept { name_ = name; }
  [[noreturn]] void refuse(std::string_view rule, std::string why, ErrorCode code = ErrorCode::format_error);

 private:
  template <class See>
  void each_member_of(lazy::object object, See see) {
    for (auto member : object) {
      lazy::field field;
      expect(std::move(member).get(field), "the object", "a member");
      std::string_view key;
      expect(field.unescaped_key().get(key), "a name", "a string");
      require_text(key, "a name");
      see(key, field.value());
    }
  }
  void expect(simdjson::error_code error, std::string_view what, std::string_view wanted) {
    if (error != simdjson::SUCCESS) [[unlikely]]
      refuse_json(error, what, wanted);
  }
  [[noreturn]] void refuse_json(simdjson::error_code error, std::string_view what, std::string_view wanted);
  // The parser has seen that the text itself is UTF-8, and has no control characters in strings; escapes can bring in anything.
  void require_text(std::string_view decoded, std::string_view what) {
    if (!has_escapes_) return;
    if (!simdjson::validate_utf8(decoded) || decoded.find('\0') != std::string_view::npos) [[unlikely]]
      refuse("utf8", text::join(what, " is not UTF-8 without zero bytes"));
  }
  std::optional<std::uint64_t> offset();
  std::optional<std::uint64_t> find_bad_utf8() const;

  const JsonText& text_;
  std::string_view path_;
  std::uint64_t file_offset_;
  bool has_escapes_;
  std::string_view name_ = {};
  lazy::parser parser_;
  lazy::document document_;
  bool started_ = false;  // else the document is none, and may not be asked anything
};

template <class See>
void JsonReader::read(std::string_view padding, See see) {
  expect(parser_.iterate(text_.data(), text_.size(), text_.size() + simdjson::SIMDJSON_PADDING).get(document_), "the text", "JSON");
  started_ = true;
  lazy::object top;
  expect(document_.get_object().get(top), "the text", "an object");
  each_member_of(top, see);
  about({});
  const char* at = nullptr;
  const std::size_t end = text_.view().find_last_not_of(padding);
  if (document_.current_location().get(at) == simdjson::SUCCESS || text_.view()[end] != '}')
    refuse("header_padding", "there is something behind the object");
}

}  // namespace berth::files
