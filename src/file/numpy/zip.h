// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// Zip archives with stored (uncompressed) members, as .npz files are. Parsing is a pure function; a ZipLayout
// is for one thread at a time.
//
//     | local header | member | local header | member | … | directory: a row for each member | end of the directory |
//
// An archive is read from the back, and has one end record that anyone could take for it. The end record gives the offset of the directory, a row the offset of its
// local header, and the local header its own length: each is checked against the file, and the row and the
// local header of a member against each other. Members must not overlap. Archives past 4 GiB and 65,535 members
// (zip64) are read and written.
namespace berth::internal::file {

// Reads a range of the archive, or throws.
using ReadAt = std::function<void(std::uint64_t offset, std::span<std::byte> target)>;

struct ZipMember {
  std::string name;
  std::uint64_t offset = 0;  // of its bytes
  std::uint64_t bytes = 0;
  std::uint32_t crc = 0;
};

// The members, sorted by position; no two have the same name. Throws FormatError, with code unsupported for
// compressed and encrypted members.
std::vector<ZipMember> parse_zip(const ReadAt& read, std::uint64_t file_bytes, std::string_view path);

// Generates the bytes of an archive around those of its members.
class ZipLayout {
 public:
  // Adds a member, whose local header is padded so that its bytes begin at a multiple of `alignment`. Returns
  // their offset.
  std::uint64_t add(const std::string& name, std::uint64_t bytes, std::uint32_t crc, std::size_t alignment);
  // The local header of the member that was added last, and its offset.
  const std::string& local_header() const noexcept { return local_; }
  std::uint64_t local_offset() const noexcept { return local_offset_; }
  // The directory and its end record, which follow the last member.
  std::string directory() const;
  std::uint64_t directory_offset() const noexcept { return end_; }

 private:
  std::string rows_;
  std::uint64_t count_ = 0;
  std::uint64_t end_ = 0;  // of the last member
  std::string local_;
  std::uint64_t local_offset_ = 0;
};

}  // namespace berth::internal::file
