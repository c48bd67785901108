// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "berth/base/checked.h"
#include "file/numpy/zip.h"

namespace berth::internal::file {

namespace {

constexpr std::uint64_t kSmallLimit = 0xFFFFFFFF;  // the value of a 4-byte field whose number is in a zip64
                                                   // field
constexpr std::uint64_t kUtf8 = 0x0800;            // flag: names are UTF-8
constexpr std::uint64_t kDate = 0x21;              // 1 January 1980: equal arrays give equal archives

std::string number(std::uint64_t value, std::size_t bytes) {
  std::string out;
  for (std::size_t i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
  return out;
}

std::string small(std::uint64_t value) { return number(std::min(value, kSmallLimit), 4); }

// The fields common to local headers and rows of the directory, from the version on.
std::string common(std::uint64_t bytes, std::uint32_t crc, bool large) {
  return number(large ? 45 : 20, 2) + number(kUtf8, 2) + number(0, 2) + number(0, 2) + number(kDate, 2) + number(crc, 4) + small(bytes) +
         small(bytes);
}

}  // namespace

std::uint64_t ZipLayout::add(const std::string& name, std::uint64_t bytes, std::uint32_t crc, std::size_t alignment) {
  const bool large = bytes >= kSmallLimit;
  const bool far = end_ >= kSmallLimit;
  local_offset_ = end_;
  std::string extra = large ? number(1, 2) + number(16, 2) + number(bytes, 8) + number(bytes, 8) : std::string();
  // The extra field that zipalign tools use: the alignment, and as many zeros as needed.
  constexpr std::size_t kFixed = 30;
  constexpr std::size_t kLeast = 6;
  const std::uint64_t bare = end_ + kFixed + name.size() + extra.size() + kLeast;
  const std::uint64_t begin = checked_align_up(bare, alignment, "the offset of an array in the archive");
  extra += number(0xD935, 2) + number(begin - bare + 2, 2) + number(alignment, 2) + std::string(begin - bare, '\0');
  local_ = number(0x04034b50, 4) + common(bytes, crc, large) + number(name.size(), 2) + number(extra.size(), 2) + name + extra;

  std::string more = large ? number(bytes, 8) + number(bytes, 8) : std::string();
  if (far) more += number(local_offset_, 8);
  if (!more.empty()) more = number(1, 2) + number(more.size(), 2) + more;
  rows_ += number(0x02014b50, 4) + number(45, 2) + common(bytes, crc, large || far) + number(name.size(), 2) + number(more.size(), 2) +
           number(0, 2) + number(0, 2) + number(0, 2) + number(0, 4) + small(local_offset_) + name + more;
  ++count_;
  end_ = checked_add(begin, bytes, "the bytes of the archive");
  return begin;
}

std::string ZipLayout::directory() const {
  std::string out = rows_;
  if (count_ >= 0xFFFF || rows_.size() >= kSmallLimit || end_ >= kSmallLimit) {
    const std::uint64_t at = end_ + rows_.size();
    out += number(0x06064b50, 4) + number(44, 8) + number(45, 2) + number(45, 2) + number(0, 4) + number(0, 4) + number(count_, 8) +
           number(count_, 8) + number(rows_.size(), 8) + number(end_, 8);
    out += number(0x07064b50, 4) + number(0, 4) + number(at, 8) + number(1, 4);
  }
  const std::string count = number(std::min<std::uint64_t>(count_, 0xFFFF), 2);
  return out + number(0x06054b50, 4) + number(0, 2) + number(0, 2) + count + count + small(rows_.size()) + small(end_) + number(0, 2);
}

}  // namespace berth::internal::file
