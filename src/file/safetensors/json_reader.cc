// SPDX-License-Identifier: Apache-2.0
#include "file/safetensors/json_reader.h"

#include <algorithm>
#include <new>

namespace berth::internal::file {

namespace {

constexpr int kMostNesting = 32;  // of skipped values

}  // namespace

std::string_view JsonReader::text(lazy::value value, std::string_view what) {
  lazy::raw_json_string raw;
  expect(value.get_raw_json_string().get(raw), what, "a string");
  return decoded(raw, what);
}

std::string_view JsonReader::unescaped(lazy::raw_json_string raw, std::string_view what) {
  if (room_ == nullptr) {
    room_.reset(new std::uint8_t[text_.size() + JsonText::kRoom]);
    room_at_ = room_.get();
  }
  std::string_view found;
  expect(parser_.unescape(raw, room_at_).get(found), what, "a string");
  if (!simdjson::validate_utf8(found) || found.find('\0') != std::string_view::npos)
    refuse("utf8", text::join(what, " is not UTF-8 without zero bytes"));
  return found;
}

std::uint64_t JsonReader::whole(lazy::value value, std::string_view what) {
  std::uint64_t found = 0;
  expect(value.get_uint64().get(found), what, "a whole number that is not negative");
  return found;
}

void JsonReader::skip(lazy::value value, int depth) {
  if (depth > kMostNesting) refuse("nesting", text::join("it is nested more than ", kMostNesting, " deep"), ErrorCode::limit_exceeded);
  lazy::json_type type{};
  expect(value.type().get(type), "a value", "JSON");
  switch (type) {
    case lazy::json_type::object: return each_member(value, "a value", [&](std::string_view, lazy::value one) { skip(one, depth + 1); });
    case lazy::json_type::array: return each_item(value, "a value", [&](lazy::value one) { skip(one, depth + 1); });
    case lazy::json_type::string: return (void)text(value, "a value");
    case lazy::json_type::number: return expect(value.get_number().error(), "a value", "a number");
    case lazy::json_type::boolean: return expect(value.get_bool().error(), "a value", "true or false");
    case lazy::json_type::null: break;
  }
  expect(value.is_null().error(), "a value", "null");
}

// The position of the parser in the file.
std::optional<std::uint64_t> JsonReader::offset() {
  const char* at = nullptr;
  if (!started_ || document_.current_location().get(at) != simdjson::SUCCESS) return std::nullopt;
  const auto within = static_cast<std::uint64_t>(at - text_.data());
  return file_offset_ + std::min<std::uint64_t>(within, text_.size());
}

std::optional<std::uint64_t> JsonReader::find_bad_utf8() const {
  for (std::size_t at = 0; at < text_.size();) {
    const std::size_t length = text::utf8_length(text_.view().substr(at));
    if (length == 0) return file_offset_ + at;
    at += length;
  }
  return std::nullopt;
}

void JsonReader::refuse(std::string_view rule, std::string why, ErrorCode code) {
  throw_fault(
      path_,
      {.rule = rule, .why = std::move(why), .code = code, .offset = offset(), .name = name_.empty() ? std::nullopt : std::optional(name_)});
}

void JsonReader::refuse_json(simdjson::error_code error, std::string_view what, std::string_view wanted) {
  switch (error) {
    case simdjson::MEMALLOC: throw std::bad_alloc();
    case simdjson::INCORRECT_TYPE:
    case simdjson::NUMBER_ERROR:
    case simdjson::NUMBER_OUT_OF_RANGE: refuse("member_type", text::join(what, " must be ", wanted));
    case simdjson::STRING_ERROR: refuse("utf8", text::join(what, " has an invalid escape"));
    case simdjson::UTF8_ERROR: throw_fault(path_, {.rule = "utf8", .why = "it is not UTF-8", .offset = find_bad_utf8()});
    default: refuse("json", text::join("it is not well-formed JSON: ", std::string_view(simdjson::error_message(error))));
  }
}

}  // namespace berth::internal::file
