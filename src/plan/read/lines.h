// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "berth/base/error.h"

// Text in lines, for the readers of graphs. Errors carry the line's number, and the line as it stands.
namespace berth::internal::plan::read {

// The bytes behind a mark of UTF-8, which some editors put in front.
std::string_view without_mark(std::string_view bytes) noexcept;

// Without the blanks around it.
std::string_view trimmed(std::string_view text) noexcept;

// What stands before the next `separator`, which is taken off `rest` with it; all of it when there is none.
std::string_view take_until(std::string_view& rest, char separator) noexcept;

// Digits alone. Nothing for anything else, and for what 64 bits do not hold.
std::optional<std::uint64_t> parse_number(std::string_view text) noexcept;

class Lines {
 public:
  // `help` says what a line is like.
  Lines(std::string_view bytes, std::string_view name, std::string_view help) : rest_(without_mark(bytes)), name_(name), help_(help) {}

  // Goes on to the next line; false when there is none.
  bool next() noexcept;

  std::string_view line() const noexcept { return line_; }  // without its end, of either kind
  std::uint64_t number() const noexcept { return number_; }

  std::string where() const;  // "reading line 3 of lives.csv, '…'"

  // Throws FormatError(format_error{line}) about the line.
  [[noreturn]] void refuse(std::string why) const;

  // The whole number that `text` is, or refuses; `what` names it.
  std::uint64_t number_of(std::string_view text, std::string_view what) const;
  std::size_t bytes_of(std::string_view text, std::string_view what) const;  // at most kMaxBytes

 private:
  std::string_view rest_;
  std::string_view name_;
  std::string_view help_;
  std::string_view line_;
  std::uint64_t number_ = 0;
};

}  // namespace berth::internal::plan::read
