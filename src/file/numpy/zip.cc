// SPDX-License-Identifier: Apache-2.0
#include "file/numpy/zip.h"

#include <algorithm>
#include <optional>

#include "base/text.h"
#include "berth/base/checked.h"
#include "berth/base/error.h"
#include "file/errors.h"
#include "file/name_index.h"

namespace berth::internal::file {

namespace {

constexpr std::uint64_t kEndBytes = 22;        // of the end of the directory
constexpr std::uint64_t kMostComment = 65535;  // after it
constexpr std::uint64_t kRowBytes = 46;
constexpr std::uint64_t kLocalBytes = 30;
constexpr std::uint64_t kLocatorBytes = 20;  // of the zip64 end
constexpr std::uint64_t kLargeEndBytes = 56;
constexpr std::uint64_t kMostDirectoryBytes = 100'000'000;

constexpr std::uint64_t kEncrypted = 1U << 0 | 1U << 6;  // flags: as ever, and "strongly"
constexpr std::uint64_t kPatched = 1U << 5;              // the member is a difference to other bytes

constexpr std::uint32_t kLocalMark = 0x04034b50;
constexpr std::uint32_t kRowMark = 0x02014b50;
constexpr std::uint32_t kEndMark = 0x06054b50;
constexpr std::uint32_t kLocatorMark = 0x07064b50;
constexpr std::uint32_t kLargeEndMark = 0x06064b50;

// A little-endian number. REQUIRES: it is inside the text.
std::uint64_t number(std::string_view text, std::size_t at, std::size_t bytes) noexcept {
  std::uint64_t value = 0;
  for (std::size_t i = bytes; i-- > 0;) value = value << 8 | static_cast<unsigned char>(text[at + i]);
  return value;
}

struct Directory {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t rows = 0;
  std::uint64_t limit = 0;  // where its end record begins, the zip64 one if there is one
};

struct Row {
  ZipMember member;
  std::uint64_t local_offset = 0;
};

class ZipParser {
 public:
  ZipParser(const ReadAt& read, std::uint64_t file_bytes, std::string_view path) : read_(read), file_bytes_(file_bytes), path_(path) {}

  std::vector<ZipMember> run() {
    directory_ = find_directory();
    std::vector<Row> rows = read_rows();
    std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.local_offset < b.local_offset; });
    check_names(rows);
    std::vector<ZipMember> members;
    members.reserve(rows.size());
    std::uint64_t end = 0;
    for (Row& row : rows) {
      if (row.local_offset < end) refuse("overlap", "it begins before the end of the previous member", row.local_offset, row.member.name);
      find_member(row);
      end = row.member.offset + row.member.bytes;
      members.push_back(std::move(row.member));
    }
    return members;
  }

 private:
  [[noreturn]] void refuse(std::string_view rule, std::string why, std::optional<std::uint64_t> offset = {},
                           std::optional<std::string_view> name = {}, ErrorCode code = ErrorCode::format_error) const {
    throw_fault(path_, {.rule = rule,
                        .why = std::move(why),
                        .help = "write the archive again with numpy.savez",
                        .code = code,
                        .offset = offset,
                        .name = name});
  }

  std::string bytes_at(std::uint64_t offset, std::uint64_t bytes) const {
    std::string text(checked_narrow<std::size_t>(bytes, "the bytes of a part of the archive"), '\0');
    read_(offset, std::as_writable_bytes(std::span(text)));
    return text;
  }

  Directory find_directory() const {
    if (file_bytes_ < kEndBytes)
      refuse("too_small", text::join("the file has ", file_bytes_, " bytes, and an archive at least ", kEndBytes));
    const std::uint64_t tail_bytes = std::min(file_bytes_, kEndBytes + kMostComment);
    const std::uint64_t tail_offset = file_bytes_ - tail_bytes;
    const std::string tail = bytes_at(tail_offset, tail_bytes);
    const std::optional<std::size_t> at = find_end(tail, tail.size() - kEndBytes);
    if (!at)
      refuse("no_directory", "it has no end-of-directory record: it was truncated, or is not a zip archive", {}, {},
             ErrorCode::file_truncated);
    require_one_end(tail, *at, tail_offset);
    return read_end(std::string_view(tail).substr(*at, kEndBytes), tail_offset + *at);
  }

  // The last end record, from `from` backwards, whose comment reaches exactly to the end of the file.
  static std::optional<std::size_t> find_end(std::string_view tail, std::size_t from) noexcept {
    for (std::size_t at = from + 1; at-- > 0;) {
      if (number(tail, at, 4) == kEndMark && number(tail, at + 20, 2) == tail.size() - at - kEndBytes) return at;
    }
    return std::nullopt;
  }

  // Some readers take the last mark in the file, whatever follows it, and others the first record that fits: with a
  // second one, each would see other members.
  void require_one_end(std::string_view tail, std::size_t found, std::uint64_t tail_offset) const {
    std::optional<std::size_t> other = found == 0 ? std::nullopt : find_end(tail, found - 1);
    for (std::size_t at = found + 4; !other && at + 4 <= tail.size(); ++at) {
      if (number(tail, at, 4) == kEndMark) other = at;
    }
    if (other) refuse("second_end", "it has two end-of-directory records", tail_offset + *other);
  }

  Directory read_end(std::string_view end, std::uint64_t offset) const {
    Directory found{.offset = number(end, 16, 4), .bytes = number(end, 12, 4), .rows = number(end, 10, 2)};
    bool parts = number(end, 4, 2) != 0 || number(end, 6, 2) != 0 || number(end, 8, 2) != found.rows;
    std::uint64_t limit = offset;
    if (found.rows == 0xFFFF || found.bytes == 0xFFFFFFFF || found.offset == 0xFFFFFFFF) {
      found = read_large_end(offset, limit);
      parts = false;
    }
    if (parts) refuse("several_parts", "it is one part of a multi-part archive", offset, {}, ErrorCode::unsupported);
    if (found.bytes > kMostDirectoryBytes)
      refuse("header_limit", text::join("the directory would be ", found.bytes, " bytes long"), offset, {}, ErrorCode::limit_exceeded);
    if (!fits(found.offset, found.bytes, limit)) refuse("bounds", "the directory is not inside the file", offset);
    found.limit = limit;
    return found;
  }

  // Values too large for the end record are in the zip64 end record, which the locator before the small one
  // points to.
  Directory read_large_end(std::uint64_t offset, std::uint64_t& limit) const {
    if (offset < kLocatorBytes) refuse("bounds", "there is no room for the zip64 end record", offset);
    const std::string locator = bytes_at(offset - kLocatorBytes, kLocatorBytes);
    const std::uint64_t at = number(locator, 8, 8);
    if (number(locator, 0, 4) != kLocatorMark || !fits(at, kLargeEndBytes, offset - kLocatorBytes))
      refuse("bounds", "the zip64 end record is not where a locator points", offset);
    const std::string end = bytes_at(at, kLargeEndBytes);
    if (number(end, 0, 4) != kLargeEndMark || number(end, 24, 8) != number(end, 32, 8))
      refuse("bounds", "the zip64 end record is not one", at);
    limit = at;
    return {.offset = number(end, 48, 8), .bytes = number(end, 40, 8), .rows = number(end, 32, 8)};
  }

  std::vector<Row> read_rows() const {
    const std::string text = bytes_at(directory_.offset, directory_.bytes);
    std::vector<Row> rows;
    std::size_t at = 0;
    while (at < text.size()) rows.push_back(read_row(text, at));
    if (rows.size() != directory_.rows)
      refuse("row_count", text::join("the directory has ", rows.size(), " entries, and should have ", directory_.rows), directory_.offset);
    // Other readers look for the directory backwards from its end, and would find another.
    const std::uint64_t end = directory_.offset + directory_.bytes;
    if (end != directory_.limit) refuse("hole", "bytes between the directory and its end record belong to none", end);
    return rows;
  }

  Row read_row(std::string_view text, std::size_t& at) const {
    const std::uint64_t offset = directory_.offset + at;
    if (!fits(at, kRowBytes, text.size()) || number(text, at, 4) != kRowMark)
      refuse("directory", "this is not an entry of the directory", offset);
    const std::string_view fixed = text.substr(at, kRowBytes);
    const std::size_t name_bytes = number(fixed, 28, 2);
    const std::size_t extra_bytes = number(fixed, 30, 2);
    const std::size_t row_bytes = kRowBytes + name_bytes + extra_bytes + number(fixed, 32, 2);
    if (!fits(at, row_bytes, text.size())) refuse("bounds", "an entry of the directory is longer than the directory", offset);
    Row row;
    row.member.name = text.substr(at + kRowBytes, name_bytes);
    row.member.crc = static_cast<std::uint32_t>(number(fixed, 16, 4));
    row.local_offset = number(fixed, 42, 4);
    std::uint64_t packed = number(fixed, 20, 4);
    row.member.bytes = number(fixed, 24, 4);
    read_large(text.substr(at + kRowBytes + name_bytes, extra_bytes), packed, row, offset);
    check_row(row, fixed, packed, offset);
    at += row_bytes;
    return row;
  }

  // Numbers that do not fit into the row are in its extra field 1 (zip64): only those, in this order.
  void read_large(std::string_view extra, std::uint64_t& packed, Row& row, std::uint64_t offset) const {
    if (row.member.bytes != 0xFFFFFFFF && packed != 0xFFFFFFFF && row.local_offset != 0xFFFFFFFF) return;
    while (extra.size() >= 4) {
      const std::size_t bytes = number(extra, 2, 2);
      if (!fits(4, bytes, extra.size())) break;
      if (number(extra, 0, 2) == 1) {
        std::string_view rest = extra.substr(4, bytes);
        for (std::uint64_t* const one : {&row.member.bytes, &packed, &row.local_offset}) {
          if (*one != 0xFFFFFFFF) continue;
          if (rest.size() < 8) refuse("bounds", "a size of the member is missing", offset, row.member.name);
          *one = number(rest, 0, 8);
          rest.remove_prefix(8);
        }
        return;
      }
      extra.remove_prefix(4 + bytes);
    }
    refuse("bounds", "a size of the member is missing", offset, row.member.name);
  }

  void check_row(const Row& row, std::string_view fixed, std::uint64_t packed, std::uint64_t offset) const {
    const std::string_view name = row.member.name;
    const std::uint64_t flags = number(fixed, 8, 2);
    if ((flags & kEncrypted) != 0) refuse("encrypted", "it is encrypted", offset, name, ErrorCode::unsupported);
    if ((flags & kPatched) != 0 || number(fixed, 10, 2) != 0)
      refuse("compressed", "it is compressed: numpy.savez writes archives that are not", offset, name, ErrorCode::unsupported);
    if (packed != row.member.bytes)
      refuse("size_mismatch", "it is not compressed, and its two sizes differ", offset, name, ErrorCode::size_mismatch);
    std::size_t at = 0;
    while (at < name.size()) {
      const std::size_t length = name[at] == '\0' ? 0 : text::utf8_length(name.substr(at));
      if (length == 0) refuse("utf8", "its name is not UTF-8 without zero bytes", offset, name);
      at += length;
    }
  }

  // Requires that the local header is at the row's offset and belongs to the same member, and that its bytes
  // end before the directory.
  void find_member(Row& row) const {
    const std::string_view name = row.member.name;
    if (!fits(row.local_offset, kLocalBytes, directory_.offset)) refuse("bounds", "it is not inside the file", row.local_offset, name);
    const std::string local = bytes_at(row.local_offset, kLocalBytes);
    const std::uint64_t name_bytes = number(local, 26, 2);
    const std::uint64_t lead = kLocalBytes + name_bytes + number(local, 28, 2);
    if (number(local, 0, 4) != kLocalMark || number(local, 8, 2) != 0 || name_bytes != name.size())
      refuse("local_header", "its local header does not match the directory", row.local_offset, name);
    if (!fits(row.local_offset, lead, directory_.offset) || !fits(row.local_offset + lead, row.member.bytes, directory_.offset))
      refuse("bounds", "its bytes reach into the directory", row.local_offset, name, ErrorCode::file_truncated);
    if (bytes_at(row.local_offset + kLocalBytes, name_bytes) != name)
      refuse("local_header", "its local header has another name than the directory", row.local_offset, name);
    row.member.offset = row.local_offset + lead;
  }

  void check_names(const std::vector<Row>& rows) const {
    const auto name_of = [&](std::size_t i) -> std::string_view { return rows[i].member.name; };
    const auto twice = NameIndex(rows.size(), name_of).duplicate(name_of);
    if (twice) refuse("duplicate_key", "two members have that name", rows[*twice].local_offset, name_of(*twice));
  }

  const ReadAt& read_;
  std::uint64_t file_bytes_;
  std::string_view path_;
  Directory directory_;
};

}  // namespace

std::vector<ZipMember> parse_zip(const ReadAt& read, std::uint64_t file_bytes, std::string_view path) {
  return ZipParser(read, file_bytes, path).run();
}

}  // namespace berth::internal::file
