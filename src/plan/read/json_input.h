// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <simdjson.h>

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/allowance.h"
#include "base/text.h"
#include "berth/base/checked.h"
#include "berth/base/error.h"

// Parsing of untrusted JSON. A `JsonPosition` is a value with its position in the document, so that errors
// carry the path to it: values[3].bytes. An object is read by a table of its members: one that is duplicate or missing
// is refused, and one that is unknown where the form is ours.
namespace berth::internal::plan::read {

class JsonDocument;

class JsonPosition {
 public:
  // The value as a type; FormatError when it has another.
  std::string_view text() const;
  bool flag() const;
  std::uint64_t number() const;
  std::int64_t signed_number() const;
  template <std::integral T>
  T number_as() const {
    const std::uint64_t wide = number();
    const std::optional<T> narrow = try_narrow<T>(wide);
    if (!narrow) refuse(text::join(wide, " is too large"), "check it");
    return *narrow;
  }
  bool is_null() const noexcept { return element_.is_null(); }
  bool is_text() const noexcept { return element_.is_string(); }
  std::string json() const { return simdjson::minify(element_); }  // the value written again

  // Calls visit(const JsonPosition&) for each item of an array, and for each member of an object.
  template <class Visit>
  void each_item(Visit visit) const;
  template <class Visit>
  void each_member(Visit visit) const;

  std::size_t items() const;  // of an array, for reserve(); saturates at 2²⁴ - 1
  std::string_view key() const noexcept { return key_; }
  std::size_t index() const noexcept { return index_; }

  [[noreturn]] void refuse(std::string why, std::string help) const;  // FormatError(format_error{at})
  [[noreturn]] void refuse_missing(std::string_view member) const;
  // Throws ArgumentError(code{at}).
  [[noreturn]] void refuse_argument(ErrorCode code, std::string why, std::string help) const;

  // Returns make(); an ArgumentError from it gets the position.
  template <class Make>
  auto made_by(Make make) const {
    try {
      return make();
    } catch (const ArgumentError& error) {
      refuse_argument(error.code(), text::join(error.asked(), ": ", error.why()), error.help());
    }
  }

 private:
  friend class JsonDocument;
  static constexpr std::size_t kNoIndex = SIZE_MAX;

  JsonPosition(simdjson::dom::element element, std::string_view document) : element_(element), document_(document) {}
  JsonPosition(simdjson::dom::element element, const JsonPosition& parent, std::string_view key, std::size_t index)
      : element_(element), document_(parent.document_), parent_(&parent), key_(key), index_(index) {}

  simdjson::dom::array array() const;
  simdjson::dom::object object() const;
  std::string path() const;
  std::string where() const;
  [[noreturn]] void refuse_kind(std::string_view wanted) const;

  simdjson::dom::element element_;
  std::string_view document_;             // its name
  const JsonPosition* parent_ = nullptr;  // outlives this one
  std::string_view key_ = {};             // in an object
  std::size_t index_ = kNoIndex;          // in an array
};

// Parsed JSON, fully validated. Throws FormatError: format_error{offset}, limit_exceeded for nesting and
// length.
class JsonDocument {
 public:
  // `help` is for what is not JSON at all.
  JsonDocument(std::string_view bytes, std::string_view name, std::string_view help = "check it with a JSON tool");

  JsonPosition top() const { return JsonPosition(top_, name_); }

 private:
  std::string name_;
  simdjson::dom::parser parser_;
  simdjson::dom::element top_;
};

// How one member of an object is read into a Draft.
template <class Draft>
struct JsonMember {
  std::string_view name;
  void (*read)(const JsonPosition& at, Draft& draft);
  bool needed = false;
};

template <class Visit>
void JsonPosition::each_item(Visit visit) const {
  std::size_t index = 0;
  for (const simdjson::dom::element item : array()) visit(JsonPosition(item, *this, {}, index++));
}

template <class Visit>
void JsonPosition::each_member(Visit visit) const {
  for (const simdjson::dom::key_value_pair member : object()) visit(JsonPosition(member.value, *this, member.key, kNoIndex));
}

enum class UnknownMembers : std::uint8_t { refused, ignored };

template <class Draft, std::size_t kCount>
[[noreturn]] void refuse_unknown(const JsonPosition& member, const JsonMember<Draft> (&members)[kCount]) {
  std::string names;
  for (const JsonMember<Draft>& one : members) names += (names.empty() ? "" : ", ") + std::string(one.name);
  member.refuse("the form has no such member", text::join("its members are: ", names));
}

template <class Draft, std::size_t kCount>
void read_members(const JsonPosition& object, const JsonMember<Draft> (&members)[kCount], Draft& draft,
                  UnknownMembers unknown = UnknownMembers::refused) {
  bool seen[kCount] = {};
  object.each_member([&](const JsonPosition& member) {
    const auto found = std::ranges::find(members, member.key(), &JsonMember<Draft>::name);
    if (found == std::end(members)) {
      if (unknown == UnknownMembers::refused) refuse_unknown(member, members);
      return;
    }
    if (std::exchange(seen[found - members], true)) member.refuse("the member appears twice", "keep one of them");
    found->read(member, draft);
  });
  for (std::size_t i = 0; i < kCount; ++i)
    if (members[i].needed && !seen[i]) object.refuse_missing(members[i].name);
}

// A list of objects, each read by the same table.
template <class Item, std::size_t kCount>
std::vector<Item> read_list(const JsonPosition& list, const JsonMember<Item> (&members)[kCount], const Item& blank = {}) {
  std::vector<Item> items;
  base::reserve(items, list.items());
  list.each_item([&](const JsonPosition& item) { read_members(item, members, items.emplace_back(blank)); });
  return items;
}

}  // namespace berth::internal::plan::read
