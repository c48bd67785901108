// SPDX-License-Identifier: Apache-2.0
#include "memory/option_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "base/text.h"
#include "berth/base/error.h"

namespace berth::internal::memory {

void read_options(std::string_view strategy, std::string_view text, std::span<const TextOption> known, std::string_view example) {
  const auto refuse = [&](std::string_view option, std::string why) {
    std::string names;
    for (const TextOption& one : known) names += text::join(names.empty() ? "" : ", ", one.name);
    throw ArgumentError(ErrorCode::invalid_argument,
                        {text::join("the allocator ", strategy, " with the option ", text::quoted(option)), std::move(why),
                         text::join("its options are ", names, ", as in ", example)},
                        {{"strategy", strategy}, {"option", text::printable(option)}});
  };
  std::vector<std::string_view> seen;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view option = text.substr(0, comma);
    const std::size_t equals = option.find('=');
    const std::string_view name = option.substr(0, equals);
    const auto found = std::ranges::find(known, name, &TextOption::name);
    if (found == known.end()) refuse(option, "it has no such option");
    if (std::ranges::find(seen, name) != seen.end()) refuse(option, "it is given twice");
    const std::string_view value = equals == std::string_view::npos ? std::string_view() : option.substr(equals + 1);
    if (found->time != nullptr) {
      if (!text::parse_duration(value, *found->time)) refuse(option, "its value is not a time such as 500ms, 5s, 2min, 0 or never");
    } else if (found->yes != nullptr) {
      if (value != "yes" && value != "no") refuse(option, "its value is neither yes nor no");
      *found->yes = value == "yes";
    } else if (found->number != nullptr || found->count != nullptr) {
      const char* const end = value.data() + value.size();
      const auto [rest, error] = found->number != nullptr ? std::from_chars(value.data(), end, *found->number, std::chars_format::fixed)
                                                          : std::from_chars(value.data(), end, *found->count);
      const bool is_finite = found->number == nullptr || std::isfinite(*found->number);  // "inf" and "nan" are read too
      if (error != std::errc() || rest != end || !is_finite)
        refuse(option, text::join("its value is not a number such as ", found->number != nullptr ? "1.05" : "16"));
    } else {
      std::uint64_t bytes = 0;
      if (!text::parse_bytes(value, bytes)) refuse(option, "its value is not a byte count");
      if (bytes == 0) refuse(option, "its value is 0");
      *found->bytes = bytes;
    }
    seen.push_back(name);
    if (comma == std::string_view::npos) return;
    text.remove_prefix(comma + 1);
    if (text.empty()) refuse("", "there is no option after the last comma");
  }
}

}  // namespace berth::internal::memory
