// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "berth/file/map.h"
#include "os/file/data_file.h"

// A file that is open, and what it was when it was opened: what everything in file/ reads through. Shared by those who use it, from any
// thread; it never changes. All of it throws as map_file does.
namespace berth::internal::file {

class OpenFile {
 public:
  // `asked` says what for, in the words of an error: "opening the file".
  static std::shared_ptr<const OpenFile> open(const std::string& path, os::OpenFor use, const char* asked);
  static Result<std::shared_ptr<const OpenFile>> try_open(const std::string& path, os::OpenFor use);
  // A file of that size, new or emptied.
  static std::shared_ptr<const OpenFile> create(const std::string& path, std::uint64_t bytes, const char* asked);

  OpenFile(std::string path, os::Descriptor descriptor, const os::FileStamp& stamp)
      : path_(std::move(path)), descriptor_(std::move(descriptor)), stamp_(stamp) {}

  const std::string& path() const noexcept { return path_; }
  int descriptor() const noexcept { return descriptor_.number(); }
  std::uint64_t bytes() const noexcept { return stamp_.bytes; }  // when it was opened

  // Reads exactly that range, by pread: of a file that was cut meanwhile FormatError(file_truncated), never a signal.
  void read(std::uint64_t offset, std::span<std::byte> target) const;

  FileState state() const;
  void require_unchanged() const;                // FormatError: file_truncated, file_changed
  void require_bytes(std::uint64_t need) const;  // that many are there still; FormatError(file_truncated)

 private:
  [[noreturn]] void throw_truncated(std::uint64_t have, std::uint64_t need) const;
  os::FileStamp stamp_now() const;

  const std::string path_;
  const os::Descriptor descriptor_;
  const os::FileStamp stamp_;
};

}  // namespace berth::internal::file
