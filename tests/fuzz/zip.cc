// SPDX-License-Identifier: Apache-2.0
#include "fuzz/zip.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "file/numpy/crc32.h"

namespace berth::testing::fuzz {

namespace {

// The records of an archive, and where their fields are (APPNOTE.TXT of PKWARE).
constexpr std::string_view kLocal = "PK\3\4";
constexpr std::string_view kRow = "PK\1\2";
constexpr std::string_view kEnd = "PK\5\6";
constexpr std::size_t kLocalBytes = 30;
constexpr std::size_t kRowBytes = 46;
constexpr std::size_t kEndBytes = 22;

std::vector<std::size_t> all_of(std::string_view bytes, std::string_view mark, std::size_t least) {
  std::vector<std::size_t> found;
  for (std::size_t at = bytes.find(mark); at != std::string_view::npos && bytes.size() - at >= least; at = bytes.find(mark, at + 1))
    found.push_back(at);
  return found;
}

class Mending {
 public:
  Mending(Random& random, std::string& bytes) : random_(random), bytes_(bytes) {}

  void run() {
    const auto locals = all_of(bytes_, kLocal, kLocalBytes);
    const auto rows = all_of(bytes_, kRow, kRowBytes);
    const auto ends = all_of(bytes_, kEnd, kEndBytes);
    if (locals.empty() || rows.empty() || ends.empty()) return;
    for (std::size_t i = 0; i < std::min(locals.size(), rows.size()); ++i)
      member(locals[i], i + 1 < locals.size() ? locals[i + 1] : rows.front(), rows[i]);
    end(ends.back(), rows);
  }

 private:
  void put(std::size_t at, std::uint64_t value, std::size_t count) {
    constexpr std::uint64_t kLeftWrong = 16;
    if (random_.one_in(kLeftWrong)) return;
    for (std::size_t i = 0; i < count; ++i) bytes_[at + i] = static_cast<char>(value >> (8 * i));
  }
  std::size_t two(std::size_t at) const {
    return static_cast<unsigned char>(bytes_[at]) | std::size_t{static_cast<unsigned char>(bytes_[at + 1])} << 8;
  }

  void member(std::size_t local, std::size_t next, std::size_t row) {
    const std::size_t data = local + kLocalBytes + two(local + 26) + two(local + 28);
    if (data > next) return;
    const std::uint32_t sum = internal::file::crc32(std::as_bytes(std::span(bytes_).subspan(data, next - data)));
    for (const std::size_t at : {local + 14, row + 16}) {
      put(at, sum, 4);
      put(at + 4, next - data, 4);
      put(at + 8, next - data, 4);
    }
    put(row + 42, local, 4);
  }

  void end(std::size_t at, const std::vector<std::size_t>& rows) {
    put(at + 8, rows.size(), 2);
    put(at + 10, rows.size(), 2);
    put(at + 12, at - std::min(at, rows.front()), 4);
    put(at + 16, rows.front(), 4);
    put(at + 20, bytes_.size() - at - kEndBytes, 2);
  }

  Random& random_;
  std::string& bytes_;
};

}  // namespace

std::string mend_zip(Random& random, std::string bytes) {
  Mending(random, bytes).run();
  return bytes;
}

}  // namespace berth::testing::fuzz
