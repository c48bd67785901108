// SPDX-License-Identifier: Apache-2.0
#include "html/number.h"

#include <charconv>
#include <cmath>
#include <string_view>

namespace berth::internal::html {

std::string decimal(double value, int decimals) {
  if (!std::isfinite(value)) return "?";
  char digits[400];  // as long as the largest double
  const auto end = std::to_chars(digits, digits + sizeof digits, value, std::chars_format::fixed, decimals);
  std::string_view shown(digits, static_cast<std::size_t>(end.ptr - digits));
  if (shown.find('.') != std::string_view::npos) {
    while (shown.ends_with('0')) shown.remove_suffix(1);
    if (shown.ends_with('.')) shown.remove_suffix(1);
  }
  return std::string(shown == "-0" ? "0" : shown);
}

}  // namespace berth::internal::html
