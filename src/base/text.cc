// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <system_error>

namespace berth::internal::base::text {

namespace {

constexpr std::array<std::string_view, 7> kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
constexpr char kHex[] = "0123456789abcdef";

bool is_continuation(std::string_view text, std::size_t at) {
  return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80;
}

}  // namespace

std::string bytes(std::uint64_t count) {
  std::size_t unit = 0;
  auto value = static_cast<double>(count);
  // 1023.5 of a unit would print as 1024
  while (value >= (unit == 0 ? 1024 : 1023.5) && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  char digits[32];
  const int decimals = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  std::snprintf(digits, sizeof digits, "%.*f", decimals, value);
  std::string_view shown = digits;
  if (decimals > 0) {
    while (shown.ends_with('0')) shown.remove_suffix(1);
    if (shown.ends_with('.')) shown.remove_suffix(1);
  }
  return join(shown, ' ', kUnits[unit]);
}

bool parse_bytes(std::string_view text, std::uint64_t& count) noexcept {
  const char* const end = text.data() + text.size();
  std::uint64_t whole = 0;
  const auto [after_whole, whole_error] = std::from_chars(text.data(), end, whole);
  const bool has_fraction = after_whole != end && *after_whole == '.';
  double value = 0;
  const auto [after_value, value_error] = std::from_chars(text.data(), end, value, std::chars_format::fixed);
  if (has_fraction ? value_error != std::errc() : whole_error != std::errc()) return false;
  const char* const rest = has_fraction ? after_value : after_whole;

  std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  std::size_t power = 0;
  const auto is_unit = [&](std::size_t i) { return unit == kUnits[i] || (i > 0 && unit == kUnits[i].substr(0, 1)); };
  if (!unit.empty()) {
    while (power < kUnits.size() && !is_unit(power)) ++power;
    if (power == kUnits.size()) return false;
  }
  if (!has_fraction) {  // exactly
    count = whole << (10 * power);
    return count >> (10 * power) == whole;
  }
  value = std::ldexp(value, static_cast<int>(10 * power));
  if (!(value >= 0) || value >= 0x1p64 || value != std::floor(value)) return false;
  count = static_cast<std::uint64_t>(value);
  return true;
}

namespace {

struct TimeUnit {
  std::string_view name;
  std::int64_t ms;
};
constexpr std::array<TimeUnit, 4> kTimeUnits = {{{"h", 3'600'000}, {"min", 60'000}, {"s", 1000}, {"ms", 1}}};

}  // namespace

std::string duration(std::chrono::milliseconds time) {
  if (time == std::chrono::milliseconds::max()) return "never";
  if (time.count() == 0) return "0 s";
  std::size_t unit = 0;
  while (time.count() % kTimeUnits[unit].ms != 0) ++unit;
  return join(time.count() / kTimeUnits[unit].ms, ' ', kTimeUnits[unit].name);
}

bool parse_duration(std::string_view text, std::chrono::milliseconds& time) noexcept {
  if (text == "never") {
    time = std::chrono::milliseconds::max();
    return true;
  }
  std::uint64_t count = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, count);
  if (error != std::errc()) return false;
  std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  if (unit.empty() && count == 0) {
    time = {};
    return true;
  }
  for (const TimeUnit& known : kTimeUnits) {
    if (unit != known.name) continue;
    if (count >= static_cast<std::uint64_t>(std::chrono::milliseconds::max().count() / known.ms)) return false;
    time = std::chrono::milliseconds(static_cast<std::int64_t>(count) * known.ms);
    return true;
  }
  return false;
}

std::size_t utf8_length(std::string_view text) noexcept {
  if (text.empty()) return 0;
  const auto first = static_cast<unsigned char>(text[0]);
  const auto second = text.size() > 1 ? static_cast<unsigned char>(text[1]) : 0;
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return is_continuation(text, 1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const bool overlong = first == 0xe0 && second < 0xa0;
    const bool surrogate = first == 0xed && second > 0x9f;
    return is_continuation(text, 1) && is_continuation(text, 2) && !overlong && !surrogate ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const bool overlong = first == 0xf0 && second < 0x90;
    const bool too_large = first == 0xf4 && second > 0x8f;
    return is_continuation(text, 1) && is_continuation(text, 2) && is_continuation(text, 3) && !overlong && !too_large ? 4 : 0;
  }
  return 0;
}

std::uint32_t code_point(std::string_view character) noexcept {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first;
  std::uint32_t value = first & (0xFFU >> (character.size() + 1));
  for (const char next : character.substr(1)) value = value << 6 | (static_cast<unsigned char>(next) & 0x3fU);
  return value;
}

namespace {

struct CodePoints {
  std::uint32_t first;
  std::uint32_t last;
};

// In order. The property Default_Ignorable_Code_Point (DerivedCoreProperties.txt) of Unicode 16, in which all
// characters are that control the direction of text; and beside it
constexpr CodePoints kUnseen[] = {
    {0x00, 0x1f},        // control characters
    {0x7f, 0x9f},        // those with the eighth bit, which some terminals obey, too
    {0xad, 0xad},        //
    {0x34f, 0x34f},      //
    {0x61c, 0x61c},      //
    {0x115f, 0x1160},    //
    {0x17b4, 0x17b5},    //
    {0x180b, 0x180f},    //
    {0x200b, 0x200f},    //
    {0x2028, 0x202e},    // U+2028 and U+2029 separate lines and paragraphs
    {0x2060, 0x206f},    //
    {0x3164, 0x3164},    //
    {0xfe00, 0xfe0f},    //
    {0xfeff, 0xfeff},    //
    {0xffa0, 0xffa0},    //
    {0xfff0, 0xfffb},    // U+FFF9 to U+FFFB annotate
    {0x1bca0, 0x1bca3},  //
    {0x1d173, 0x1d17a},  //
    {0xe0000, 0xe0fff},  //
};

void append_byte(std::string& out, char byte) {
  const auto value = static_cast<unsigned char>(byte);
  out += {'\\', 'x', kHex[value >> 4], kHex[value & 15]};
}

}  // namespace

bool is_unseen(std::uint32_t code_point) noexcept {
  return std::ranges::any_of(kUnseen, [&](const CodePoints& range) { return code_point >= range.first && code_point <= range.last; });
}

std::string printable(std::string_view name, std::size_t most) {
  std::string out;
  while (!name.empty()) {
    if (out.size() >= most) return out + "…";
    const std::size_t length = utf8_length(name);
    const std::string_view character = name.substr(0, std::max<std::size_t>(length, 1));
    if (length != 0 && !is_unseen(code_point(character))) {
      out += character;
    } else {
      for (const char byte : character) append_byte(out, byte);
    }
    name.remove_prefix(character.size());
  }
  return out;
}

std::string hex(std::uint64_t value) {
  char digits[20] = "0x";
  const auto end = std::to_chars(digits + 2, digits + sizeof digits, value, 16);
  return std::string(digits, end.ptr);
}

}  // namespace berth::internal::base::text
