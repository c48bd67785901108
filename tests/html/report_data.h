// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

// Reads back the data of HTML reports: does for tests what `unpack` of src/html/assets/view.js does.
namespace berth::testing {

// A name that ends a script and starts another, where it is not escaped.
inline const std::string kHostile = "</script><img src=x onerror=alert(1)>";

// The data of the first panel of that kind.
inline nlohmann::json data_of(const std::string& page, const std::string& kind) {
  const std::string_view open = "<script type=\"application/json\">";
  const std::size_t begin = page.find(open, page.find("data-kind=\"" + kind + "\"")) + open.size();
  return nlohmann::json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

inline int base64_digit(char c) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  return static_cast<int>(kDigits.find(c));  // -1 for any other character
}

// The numbers of html/packed.h.
inline std::vector<std::uint64_t> unpacked(std::string_view base64) {
  std::vector<std::uint64_t> numbers;
  std::uint64_t number = 0;
  int shift = 0;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : base64) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<std::uint32_t>(base64_digit(c));
    count += 6;
    if (count < 8) continue;
    count -= 8;
    const std::uint32_t byte = bits >> count & 255;
    number |= std::uint64_t{byte & 127} << shift;
    shift += 7;
    if ((byte & 128) != 0) continue;
    numbers.push_back(number);
    number = 0;
    shift = 0;
  }
  return numbers;
}

inline std::vector<std::uint64_t> numbers(const nlohmann::json& data, const char* key) { return unpacked(data[key].get<std::string>()); }

inline std::uint64_t unfolded(std::uint64_t folded) { return (folded >> 1) ^ (0 - (folded & 1)); }

// Prefix sums.
inline std::vector<std::uint64_t> summed(std::vector<std::uint64_t> steps) {
  for (std::size_t i = 1; i < steps.size(); ++i) steps[i] += steps[i - 1];
  return steps;
}

inline std::vector<std::uint64_t> summed_signed(std::vector<std::uint64_t> steps) {
  for (std::uint64_t& step : steps) step = unfolded(step);
  return summed(std::move(steps));
}

}  // namespace berth::testing
