// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "berth/file/map.h"
#include "os/file/data_file.h"

// An open file and its stamp at the time of opening; everything in file/ reads through it. Immutable, so any
// thread may use it. All of it throws as map_file does.
namespace berth::internal::file {

class OpenFile {
 public:
  // `asked` is the purpose, as error messages word it: "opening the file".
  static std::shared_ptr<const OpenFile> open(const std::string& path, os::OpenFor use, const char* asked);
  static Result<std::shared_ptr<const OpenFile>> try_open(const std::string& path, os::OpenFor use);
  // A file of that size, new or truncated first.
  static std::shared_ptr<const OpenFile> create(const std::string& path, std::uint64_t bytes, const char* asked);

  // A file that exists, open for writing; it is lengthened to that size, with zeros, if it is shorter.
  static std::shared_ptr<const OpenFile> open_grown(const std::string& path, std::uint64_t bytes, const char* asked);

  OpenFile(std::string path, os::Descriptor descriptor, const os::FileStamp& stamp)
      : path_(std::move(path)), descriptor_(std::move(descriptor)), stamp_(stamp) {}

  const std::string& path() const noexcept { return path_; }
  int descriptor() const noexcept { return descriptor_.number(); }
  std::uint64_t bytes() const noexcept { return stamp_.bytes; }  // when it was opened

  // Reads exactly that range with pread. For a file that was truncated meanwhile it throws
  // FormatError(file_truncated) and never raises a signal.
  void read(std::uint64_t offset, std::span<std::byte> target) const;

  FileState state() const;
  void require_unchanged() const;                // FormatError: file_truncated, file_changed
  void require_bytes(std::uint64_t need) const;  // unless it still has that many: FormatError(file_truncated)

 private:
  [[noreturn]] void throw_truncated(std::uint64_t have, std::uint64_t need) const;
  os::FileStamp stamp_now() const;

  const std::string path_;
  const os::Descriptor descriptor_;
  const os::FileStamp stamp_;
};

// Throws DeviceError(out_of_memory){need, have} when a file of that size does not fit on its disk. The path is for the
// error.
void require_room(int descriptor, std::uint64_t bytes, std::string_view asked, const std::string& path);

}  // namespace berth::internal::file
