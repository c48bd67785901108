// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "berth/export.h"

// Tags: a word that says what memory is for ("weights", "kv", "activations"). A tag scope tags everything that
// its thread allocates inside it without an explicit tag:
//
//     TagScope scope("kv");
//     Storage k = empty({heads, length, width}, DType::f16, "cuda:0");    // tagged "kv"
//
// Scopes are per thread and nest; the innermost one applies. Any thread.
namespace berth {

// An interned word, two bytes. Equal words are equal tags. The empty word, 0, is "no tag".
class BERTH_EXPORT Tag {
 public:
  constexpr Tag() noexcept = default;
  // Interns the word; a word that is known costs a lock-free lookup. Never fails: only the first 255 bytes
  // count, and past 65,534 different words the tag is "(other)".
  Tag(std::string_view word) noexcept;
  Tag(const char* word) noexcept : Tag(std::string_view(word)) {}

  std::string_view word() const noexcept;  // lives as long as the process
  constexpr std::uint16_t id() const noexcept { return id_; }
  static constexpr Tag from_id(std::uint16_t id) noexcept {  // REQUIRES: `id` came from id()
    Tag tag;
    tag.id_ = id;
    return tag;
  }
  constexpr explicit operator bool() const noexcept { return id_ != 0; }
  friend constexpr bool operator==(Tag, Tag) = default;

 private:
  std::uint16_t id_ = 0;
};

// The tag of this thread's innermost scope, in static TLS (initial-exec): every allocation reads it, with one
// instruction. For the two definitions below, which are inline so that the compiler can merge nested scopes:
// three scopes around one request are one store before it and one after it.
BERTH_EXPORT extern constinit thread_local Tag t_current_tag [[gnu::tls_model("initial-exec")]];

// The tag of the innermost scope of this thread.
inline Tag current_tag() noexcept { return t_current_tag; }

// REQUIRES: destroyed on the thread that made it, in reverse order, as automatic variables are.
class TagScope {
 public:
  explicit TagScope(Tag tag) noexcept : previous_(t_current_tag) { t_current_tag = tag; }
  ~TagScope() { t_current_tag = previous_; }
  TagScope(const TagScope&) = delete;
  TagScope& operator=(const TagScope&) = delete;

 private:
  Tag previous_;
};

}  // namespace berth
