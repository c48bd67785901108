// SPDX-License-Identifier: Apache-2.0
#include "plan/read/lines.h"

#include <charconv>

#include "base/text.h"
#include "berth/base/checked.h"

namespace berth::internal::plan::read {

std::string_view without_mark(std::string_view bytes) noexcept {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  return bytes.starts_with(kMark) ? bytes.substr(kMark.size()) : bytes;
}

std::string_view trimmed(std::string_view text) noexcept {
  constexpr std::string_view kBlanks = " \t";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::string_view take_until(std::string_view& rest, char separator) noexcept {
  const std::size_t end = rest.find(separator);
  const std::string_view taken = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return taken;
}

std::optional<std::uint64_t> parse_number(std::string_view text) noexcept {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

bool Lines::next() noexcept {
  if (rest_.empty()) return false;
  line_ = take_until(rest_, '\n');
  if (line_.ends_with('\r')) line_.remove_suffix(1);
  ++number_;
  return true;
}

std::string Lines::where() const {
  return text::join("reading line ", number_, " of ", text::printable(name_), ", ", text::quoted(line_.substr(0, 80)));
}

void Lines::refuse(std::string why) const {
  throw FormatError(ErrorCode::format_error, {where(), std::move(why), std::string(help_)}, {{"line", number_}});
}

std::uint64_t Lines::number_of(std::string_view text, std::string_view what) const {
  const std::optional<std::uint64_t> number = parse_number(text);
  if (!number) refuse(text::join(what, ", ", text::quoted(text.substr(0, 40)), ", is not a whole number of 64 bits"));
  return *number;
}

std::size_t Lines::bytes_of(std::string_view text, std::string_view what) const {
  const std::uint64_t bytes = number_of(text, what);
  if (bytes > kMaxBytes) refuse(text::join(what, " is ", bytes, ", and no address space holds that many bytes"));
  return bytes;
}

}  // namespace berth::internal::plan::read
