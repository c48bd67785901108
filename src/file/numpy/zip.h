// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// Zip archives whose members are stored as they are: what .npz files are.
//
//     | local header | member | local header | member | … | directory: a row for each member | end of the directory |
//
// It is read from the back. The end says where the directory is, a row where its local header is, and that how long it is itself: each is
// checked against the file, and the two that tell of a member against each other. Members may not overlap. Archives past 4 GiB and 65,535
// members (zip64) are read and written.
namespace berth::internal::file {

// Reads that range of the archive, or throws.
using ReadAt = std::function<void(std::uint64_t offset, std::span<std::byte> target)>;

struct ZipMember {
  std::string name;
  std::uint64_t offset = 0;  // of its bytes
  std::uint64_t bytes = 0;
  std::uint32_t crc = 0;
};

// The members by place; no two have the same name. Throws FormatError; unsupported for what is compressed or encrypted.
std::vector<ZipMember> parse_zip(const ReadAt& read, std::uint64_t file_bytes, std::string_view path);

// The bytes of an archive around those of its members.
class ZipLayout {
 public:
  // The member's header is `alignment` bytes or more in front of it, so that it begins at a multiple of that. Returns where it begins.
  std::uint64_t add(const std::string& name, std::uint64_t bytes, std::uint32_t crc, std::size_t alignment);
  // The local header of the member that was added last, and where it goes.
  const std::string& local_header() const noexcept { return local_; }
  std::uint64_t local_offset() const noexcept { return local_offset_; }
  // The directory and its end, which go behind the last member.
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
