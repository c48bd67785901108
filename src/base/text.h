// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/namespace.h"
#include "berth/export.h"

// Text for messages. The lower layers depend on no formatting library, so this has the little they need:
// concatenation, human-readable byte counts and durations, and escaping of untrusted names. Any thread.
namespace berth::internal::base::text {

inline void append(std::string& out, std::string_view piece) { out += piece; }
inline void append(std::string& out, char piece) { out += piece; }
inline void append(std::string& out, std::integral auto number) { out += std::to_string(number); }

// join("axis ", 2, " of ", 3) == "axis 2 of 3"
template <class... Pieces>
std::string join(const Pieces&... pieces) {
  std::string out;
  (append(out, pieces), ...);
  return out;
}

// 0 B, 1023 B, 1.5 KiB, 20 MiB: three significant digits, binary units, no trailing zeros.
BERTH_EXPORT std::string bytes(std::uint64_t count);

// The inverse: "4096", "64KiB", "1.5 GiB", "2M" (binary). False when the text is malformed or the count does
// not fit.
BERTH_EXPORT bool parse_bytes(std::string_view text, std::uint64_t& count) noexcept;

// "0 s", "250 ms", "10 s", "5 min", "never" (milliseconds::max()): in the largest unit that needs no fraction.
BERTH_EXPORT std::string duration(std::chrono::milliseconds time);

// The inverse: a whole number and ms, s, min or h, "0", or "never". False when the text is malformed or the
// time does not fit.
BERTH_EXPORT bool parse_duration(std::string_view text, std::chrono::milliseconds& time) noexcept;

// Length in bytes of the valid UTF-8 sequence at the front of `text`; 0 when it is not one.
BERTH_EXPORT std::size_t utf8_length(std::string_view text) noexcept;

// The code point of a valid UTF-8 sequence, which is all of `character`.
BERTH_EXPORT std::uint32_t code_point(std::string_view character) noexcept;

// Whether a terminal would obey a character instead of showing it, or show nothing: control characters; those that
// reorder the text around them (such as U+202E), separate lines, or annotate; and those that Unicode calls default
// ignorable, with which two names differ and look alike.
BERTH_EXPORT bool is_unseen(std::uint32_t code_point) noexcept;

// An untrusted name, made safe for a terminal and for one line: the bytes of what is_unseen, and those that are not
// UTF-8, appear as \xNN; a name of more than `most` bytes is truncated with an ellipsis.
BERTH_EXPORT std::string printable(std::string_view name, std::size_t most = 256);

// `name` made printable, in quotes.
inline std::string quoted(std::string_view name) { return join('\'', printable(name), '\''); }

// "0x…", lower case.
BERTH_EXPORT std::string hex(std::uint64_t value);
inline std::string pointer(const void* address) { return hex(reinterpret_cast<std::uintptr_t>(address)); }

}  // namespace berth::internal::base::text
