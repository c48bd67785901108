// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "berth/base/error.h"

// Text in lines, for the readers of graphs. Errors carry the line number and the line.
namespace berth::internal::plan::read {

// Strips a UTF-8 byte order mark, which some editors write.
std::string_view without_mark(std::string_view bytes) noexcept;

// Strips leading and trailing blanks.
std::string_view trimmed(std::string_view text) noexcept;

// Removes and returns the text before the next `separator`, and removes the separator; all of `rest` when there
// is none.
std::string_view take_until(std::string_view& rest, char separator) noexcept;

// Parses decimal digits only. Nothing for anything else, and on overflow of 64 bits.
std::optional<std::uint64_t> parse_number(std::string_view text) noexcept;

class Lines {
 public:
  // `help` describes the format of a line, for errors.
  Lines(std::string_view bytes, std::string_view name, std::string_view help) : rest_(without_mark(bytes)), name_(name), help_(help) {}

  // Advances to the next line; false at the end.
  bool next() noexcept;

  std::string_view line() const noexcept { return line_; }  // without its LF or CRLF
  std::uint64_t number() const noexcept { return number_; }
  std::size_t left() const noexcept { return rest_.size(); }  // bytes after the line

  std::string where() const;  // "reading line 3 of lives.csv, '…'"

  // Throws FormatError(format_error{line}) about the line.
  [[noreturn]] void refuse(std::string why) const;

  // Parses an unsigned integer, or refuses; `what` names it.
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
