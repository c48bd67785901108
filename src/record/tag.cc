// SPDX-License-Identifier: Apache-2.0
#include "berth/record/tag.h"

#include <functional>
#include <string>

#include "record/interner.h"

namespace berth {

using namespace internal::record;

namespace {

constexpr std::size_t kLongest = 255;
constexpr std::string_view kOther = "(other)";  // for words when the table is full
constexpr std::uint16_t kOtherId = 1;

struct WordTraits {
  static std::size_t hash(std::string_view word) noexcept { return std::hash<std::string_view>()(word); }
  static bool equal(std::string_view a, std::string_view b) noexcept { return a == b; }
};

using Words = Interner<std::string, WordTraits>;

// nullptr when the heap is exhausted. Never destroyed: tags outlive every static object.
Words* words() noexcept { return made_once<Words>(); }

}  // namespace

constinit thread_local Tag t_current_tag [[gnu::tls_model("initial-exec")]];

Tag::Tag(std::string_view word) noexcept {
  if (word.empty()) return;
  Words* const table = words();
  const std::uint32_t number = table == nullptr ? 0 : table->intern(word.substr(0, kLongest));
  // The ids of words begin at 2, after "(other)".
  id_ = static_cast<std::uint16_t>(number == 0 || number == Words::kMost ? kOtherId : number + 1);
}

std::string_view Tag::word() const noexcept {
  if (id_ <= kOtherId) return id_ == kOtherId ? kOther : std::string_view();
  const std::string* const word = words()->key(id_ - 1U);  // an id comes from the table, so it exists
  return word == nullptr ? std::string_view() : std::string_view(*word);
}

}  // namespace berth
