// SPDX-License-Identifier: Apache-2.0
#include "berth/record/tag.h"

#include <functional>
#include <string>

#include "record/interner.h"

namespace berth {

namespace {

constexpr std::size_t kLongest = 255;
constexpr std::string_view kOther = "(other)";

struct WordTraits {
  static std::size_t hash(std::string_view word) noexcept { return std::hash<std::string_view>()(word); }
  static bool equal(std::string_view a, std::string_view b) noexcept { return a == b; }
};

// Never destroyed: tags outlive every static object.
Interner<std::string, WordTraits>& words() {
  static auto* const table = [] {
    auto* const made = new Interner<std::string, WordTraits>;
    made->intern(kOther);  // number 1, so that it exists when the table is full
    return made;
  }();
  return *table;
}

constexpr std::uint16_t kOtherId = 1;

// In the static block of thread-local memory, where reading it is one instruction: it is read at every allocation.
[[gnu::tls_model("initial-exec")]] constinit thread_local Tag t_current;

}  // namespace

Tag::Tag(std::string_view word) noexcept {
  if (word.empty()) return;
  const std::uint32_t number = words().intern(word.substr(0, kLongest));
  id_ = number == 0 ? kOtherId : static_cast<std::uint16_t>(number);
}

std::string_view Tag::word() const noexcept {
  const std::string* const word = words().key(id_);
  return word == nullptr ? std::string_view() : std::string_view(*word);
}

Tag current_tag() noexcept { return t_current; }

TagScope::TagScope(Tag tag) noexcept : previous_(t_current) { t_current = tag; }
TagScope::~TagScope() { t_current = previous_; }

}  // namespace berth
