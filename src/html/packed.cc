// SPDX-License-Identifier: Apache-2.0
#include "html/packed.h"

#include <string_view>
#include <utility>

namespace berth::internal::html {

namespace {

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::string base64(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  const auto byte = [&](std::size_t i) -> std::uint32_t { return i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0U; };
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::uint32_t three = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    for (int shift = 18; shift >= 0; shift -= 6) out += kDigits[three >> shift & 63];
  }
  const std::size_t missing = (3 - bytes.size() % 3) % 3;
  out.replace(out.size() - missing, missing, missing, '=');
  return out;
}

}  // namespace

void Packed::add(std::uint64_t number) {
  for (; number > 127; number >>= 7) bytes_ += static_cast<char>(number | 128);
  bytes_ += static_cast<char>(number);
}

std::string Packed::take() { return base64(std::exchange(bytes_, {})); }

}  // namespace berth::internal::html
