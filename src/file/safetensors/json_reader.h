// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "berth/base/error.h"
#include "file/errors.h"
#include "file/safetensors/json_text.h"

// A single-pass JSON reader for headers and indexes. It validates everything and keeps nothing except what the
// caller copies; errors name the byte and the tensor. One thread at a time.
namespace berth::internal::file {

namespace lazy = simdjson::ondemand;

static_assert(JsonText::kRoom >= simdjson::SIMDJSON_PADDING);

class JsonReader {
 public:
  // The text begins at byte `file_offset` of the file. Text and path must outlive the reader.
  JsonReader(const JsonText& text, std::string_view path, std::uint64_t file_offset)
      : text_(text), path_(path), file_offset_(file_offset), has_escapes_(text.view().find('\\') != std::string_view::npos) {}

  // Calls see(key, value) for each member of the top-level object. The key is unescaped, valid UTF-8 without
  // NUL, and valid as long as the reader. Only characters of `padding` may follow the object.
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
  // A non-negative integer: 1, but not 1.0 or 1e0.
  std::uint64_t whole(lazy::value value, std::string_view what);
  // Skips a value of any type, which must still be well-formed.
  void skip(lazy::value value, int depth = 0);

  // Sets the tensor that errors name; empty: none.
  void about(std::string_view name) noexcept { name_ = name; }
  [[noreturn]] void refuse(std::string_view rule, std::string why, ErrorCode code = ErrorCode::format_error);

 private:
  template <class See>
  void each_member_of(lazy::object object, See see) {
    for (auto member : object) {
      lazy::field field;
      expect(std::move(member).get(field), "the object", "a member");
      const std::string_view key = decoded(field.key(), "a name");
      see(key, field.value());
    }
  }
  void expect(simdjson::error_code error, std::string_view what, std::string_view wanted) {
    if (error != simdjson::SUCCESS) [[unlikely]]
      refuse_json(error, what, wanted);
  }
  [[noreturn]] void refuse_json(simdjson::error_code error, std::string_view what, std::string_view wanted);
  // Without escapes, returns a view of the text itself, which the parser has validated as UTF-8 without control
  // characters. Otherwise unescapes into our own buffer (the parser does not report a failed allocation of its
  // buffer) and validates the result, because escapes can encode anything.
  std::string_view decoded(lazy::raw_json_string raw, std::string_view what) {
    if (has_escapes_) [[unlikely]]
      return unescaped(raw, what);
    const char* const begin = raw.raw();
    const auto left = static_cast<std::size_t>(text_.data() + text_.size() - begin);
    const void* const end = std::memchr(begin, '"', left);
    return {begin, end == nullptr ? left : static_cast<std::size_t>(static_cast<const char*>(end) - begin)};
  }
  std::string_view unescaped(lazy::raw_json_string raw, std::string_view what);
  std::optional<std::uint64_t> offset();
  std::optional<std::uint64_t> find_bad_utf8() const;

  const JsonText& text_;
  std::string_view path_;
  std::uint64_t file_offset_;
  bool has_escapes_;
  std::unique_ptr<std::uint8_t[]> room_ = {};  // for unescaped strings; allocated when first needed
  std::uint8_t* room_at_ = nullptr;
  std::string_view name_ = {};
  lazy::parser parser_;
  lazy::document document_;
  bool started_ = false;  // if false, the document must not be used
};

template <class See>
void JsonReader::read(std::string_view padding, See see) {
  expect(parser_.iterate(text_.data(), text_.size(), text_.size() + JsonText::kRoom).get(document_), "the text", "JSON");
  started_ = true;
  lazy::object top;
  expect(document_.get_object().get(top), "the text", "an object");
  each_member_of(top, see);
  about({});
  const char* at = nullptr;
  const std::size_t end = text_.view().find_last_not_of(padding);
  if (document_.current_location().get(at) == simdjson::SUCCESS || text_.view()[end] != '}')
    refuse("header_padding", "there are bytes after the object");
}

}  // namespace berth::internal::file
