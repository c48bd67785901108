// SPDX-License-Identifier: Apache-2.0
#include "plan/read/json_input.h"

#include <new>

#include "plan/read/lines.h"

namespace berth::internal::plan::read {

namespace {

namespace lazy = simdjson::ondemand;

// Bytes of the parser's own for each byte of text: eight of its tape, four of its index, and strings.
constexpr std::size_t kParsed = 14;
constexpr std::size_t kMostNesting = 32;  // our own formats need seven

simdjson::error_code walk(lazy::value value);

simdjson::error_code walk(lazy::array items) {
  for (auto item : items) {
    lazy::value value;
    if (const auto error = item.get(value)) return error;
    if (const auto error = walk(value)) return error;
  }
  return simdjson::SUCCESS;
}

simdjson::error_code walk(lazy::object members) {
  for (auto member : members) {
    lazy::field field;
    if (const auto error = std::move(member).get(field)) return error;
    if (const auto error = walk(field.value())) return error;
  }
  return simdjson::SUCCESS;
}

simdjson::error_code walk_scalar(lazy::value value, lazy::json_type type) {
  switch (type) {
    case lazy::json_type::number: return value.get_number().error();
    case lazy::json_type::string: return value.get_string().error();
    case lazy::json_type::boolean: return value.get_bool().error();
    default: return value.is_null().error();
  }
}

simdjson::error_code walk(lazy::value value) {
  lazy::json_type type{};
  if (const auto error = value.type().get(type)) return error;
  lazy::array items;
  lazy::object members;
  if (type == lazy::json_type::array) {
    if (const auto error = value.get_array().get(items)) return error;
    return walk(items);
  }
  if (type == lazy::json_type::object) {
    if (const auto error = value.get_object().get(members)) return error;
    return walk(members);
  }
  return walk_scalar(value, type);
}

// The fast parser reports the error without its position; the lazy one knows how far it got. Nothing when it
// cannot even start.
std::optional<std::size_t> find_fault(std::string_view bytes) {
  const simdjson::padded_string padded(bytes);
  lazy::parser parser;
  lazy::document document;
  lazy::value top;
  if (parser.allocate(bytes.size(), kMostNesting) || parser.iterate(padded).get(document)) return std::nullopt;
  if (!document.get_value().get(top)) (void)walk(top);
  const char* at = nullptr;
  if (document.current_location().get(at)) return bytes.size();
  return std::min(static_cast<std::size_t>(at - padded.data()), bytes.size());
}

std::optional<std::size_t> find_bad_utf8(std::string_view bytes) {
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t length = text::utf8_length(bytes.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return std::nullopt;
}

[[noreturn]] void refuse_bytes(simdjson::error_code error, std::string_view bytes, std::size_t skipped, std::string_view name,
                               std::string_view help) {
  if (error == simdjson::MEMALLOC) throw std::bad_alloc();
  const bool too_deep = error == simdjson::DEPTH_ERROR;
  const bool limit = too_deep || error == simdjson::CAPACITY;
  ErrorText words{text::join("reading ", text::printable(name), " as JSON"), simdjson::error_message(error), std::string(help)};
  if (too_deep) {
    words.why = text::join("it is nested more than ", kMostNesting, " deep");
    words.help = "give a graph or a plan of berth, whose forms need seven levels, or a graph of a runtime";
  }
  std::vector<Fact> facts;
  const auto offset = limit ? std::nullopt : error == simdjson::UTF8_ERROR ? find_bad_utf8(bytes) : find_fault(bytes);
  if (offset) {
    words.asked += text::join(", near byte ", *offset + skipped);
    facts.push_back({"offset", *offset + skipped});
  }
  throw FormatError(limit ? ErrorCode::limit_exceeded : ErrorCode::format_error, std::move(words), std::move(facts));
}

}  // namespace

JsonDocument::JsonDocument(std::string_view bytes, std::string_view name, std::string_view help) : name_(name) {
  const std::string_view json = without_mark(bytes);
  base::take(kParsed * json.size());
  auto error = parser_.allocate(std::max<std::size_t>(json.size(), 1), kMostNesting);
  if (!error) error = parser_.parse(json.data(), json.size()).get(top_);
  if (error) refuse_bytes(error, json, bytes.size() - json.size(), name_, help);
}

std::string_view JsonPosition::text() const {
  std::string_view found;
  if (element_.get(found)) refuse_kind("a string");
  return found;
}

bool JsonPosition::flag() const {
  bool found = false;
  if (element_.get(found)) refuse_kind("true or false");
  return found;
}

std::uint64_t JsonPosition::number() const {
  std::uint64_t found = 0;
  if (element_.get(found)) refuse_kind("a whole number that is not negative");
  return found;
}

std::int64_t JsonPosition::signed_number() const {
  std::int64_t found = 0;
  if (element_.get(found)) refuse_kind("a whole number");
  return found;
}

std::size_t JsonPosition::items() const { return array().size(); }

simdjson::dom::array JsonPosition::array() const {
  simdjson::dom::array found;
  if (element_.get(found)) refuse_kind("a list");
  return found;
}

simdjson::dom::object JsonPosition::object() const {
  simdjson::dom::object found;
  if (element_.get(found)) refuse_kind("an object");
  return found;
}

std::string JsonPosition::path() const {
  if (parent_ == nullptr) return {};
  std::string before = parent_->path();
  if (index_ != kNoIndex) return text::join(before, '[', index_, ']');
  return text::join(before, before.empty() ? "" : ".", text::printable(key_, 80));
}

std::string JsonPosition::where() const {
  const std::string at = path();
  return at.empty() ? text::join("reading ", text::printable(document_)) : text::join("reading ", at, " of ", text::printable(document_));
}

void JsonPosition::refuse(std::string why, std::string help) const {
  throw FormatError(ErrorCode::format_error, {where(), std::move(why), std::move(help)}, {{"at", path()}});
}

void JsonPosition::refuse_missing(std::string_view member) const {
  JsonPosition(element_, *this, member, kNoIndex).refuse("it is missing", "add it");
}

void JsonPosition::refuse_argument(ErrorCode code, std::string why, std::string help) const {
  throw ArgumentError(code, {where(), std::move(why), std::move(help)}, {{"at", path()}});
}

void JsonPosition::refuse_kind(std::string_view wanted) const {
  const std::string found = element_.is_array() ? "a list" : element_.is_object() ? "an object" : simdjson::minify(element_);
  refuse(text::join("expected ", wanted, ", not ", text::printable(found, 40)),
         "see berth/plan/read_graph.h for the form, and berth/plan/runtime_graph.h for that of graph runtimes");
}

}  // namespace berth::internal::plan::read
