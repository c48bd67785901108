// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <system_error>

namespace berth::text {

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
  // 1023.95 would print as 1024.0 of the smaller unit.
  while (unit + 1 < kUnits.size() && value >= (unit == 0 ? 1024 : 1023.95)) {
    value /= 1024;
    ++unit;
  }
  char digits[32];
  const bool round = value == std::floor(value);
  std::snprintf(digits, sizeof digits, round ? "%.0f" : value < 10 ? "%.2f" : value < 100 ? "%.1f" : "%.0f", value);
  return join(std::string_view(digits), ' ', kUnits[unit]);
}

bool parse_bytes(std::string_view text, std::uint64_t& count) noexcept {
  double value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc() || !(value >= 0)) return false;
  std::string_view unit(rest, static_cast<std::size_t>(text.data() + text.size() - rest));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  double scale = 1;
  if (!unit.empty()) {
    std::size_t index = 0;
    while (index < kUnits.size() && unit != kUnits[index] && !(index > 0 && unit == kUnits[index].substr(0, 1))) ++index;
    if (index == kUnits.size()) return false;
    scale = std::ldexp(1.0, static_cast<int>(10 * index));
  }
  value *= scale;
  if (value >= 0x1p64 || value != std::floor(value)) return false;
  count = static_cast<std::uint64_t>(value);
  return true;
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

std::string printable(std::string_view name, std::size_t most) {
  std::string out;
  while (!name.empty()) {
    if (out.size() >= most) return out + "…";
    const auto c = static_cast<unsigned char>(name.front());
    const std::size_t length = utf8_length(name);
    // U+0080 to U+009F are control characters too, and some terminals obey them.
    const bool control = c < 0x20 || c == 0x7f || (c == 0xc2 && length == 2 && static_cast<unsigned char>(name[1]) < 0xa0);
    if (length == 0 || control) {
      out += "\\x";
      out += kHex[c >> 4];
      out += kHex[c & 15];
      name.remove_prefix(1);
    } else {
      out += name.substr(0, length);
      name.remove_prefix(length);
    }
  }
  return out;
}

std::string hex(std::uint64_t value) {
  char digits[20] = "0x";
  const auto end = std::to_chars(digits + 2, digits + sizeof digits, value, 16);
  return std::string(digits, end.ptr);
}

}  // namespace berth::text
