// SPDX-License-Identifier: Apache-2.0
#include "file/numpy/crc32.h"

#include <array>
#include <bit>
#include <cstring>

namespace berth::internal::file {

namespace {

using Table = std::array<std::uint32_t, 256>;

// tables[k][b]: the effect of byte b, followed by k zero bytes, on the checksum ("slicing by 8"). Eight bytes
// at a time are then eight independent lookups.
constexpr std::array<Table, 8> make_tables() {
  std::array<Table, 8> tables{};
  for (std::uint32_t b = 0; b < 256; ++b) {
    std::uint32_t sum = b;
    for (int bit = 0; bit < 8; ++bit) sum = sum >> 1 ^ ((sum & 1) != 0 ? 0xEDB88320U : 0U);
    tables[0][b] = sum;
  }
  for (std::size_t k = 1; k < tables.size(); ++k) {
    for (std::uint32_t b = 0; b < 256; ++b) tables[k][b] = tables[k - 1][b] >> 8 ^ tables[0][tables[k - 1][b] & 0xFF];
  }
  return tables;
}

constexpr std::array<Table, 8> kTables = make_tables();
static_assert(std::endian::native == std::endian::little);

}  // namespace

std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t sum) noexcept {
  sum = ~sum;
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof word);
    word ^= sum;
    sum = 0;
    for (std::size_t k = 0; k < 8; ++k) sum ^= kTables[7 - k][word >> (8 * k) & 0xFF];
  }
  for (const std::byte b : bytes) sum = sum >> 8 ^ kTables[0][(sum ^ static_cast<std::uint32_t>(b)) & 0xFF];
  return ~sum;
}

}  // namespace berth::internal::file
