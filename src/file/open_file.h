// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "berth/file/map.h"
#include "berth/file/tensor_entry.h"
#include "os/data_file.h"

// A file that is open, and what it was when it was opened: what everything in file/ reads through. Shared by those who use it; immutable.
namespace berth::files {

class OpenFile {
 public:
  // Throws as map_file does. `asked` says what for: "opening the file".
  static std::shared_ptr<const OpenFile> open(const std::string& path, os::OpenFor use, const char* asked);
  // A file of that size, new or emptied.
  static std::shared_ptr<const OpenFile> create(const std::string& path, std::uint64_t bytes, const char* asked);

  const std::string& path() const noexcept { return path_; }
  int descriptor() const noexcept { return descriptor_.number(); }
  std::uint64_t bytes() const noexcept { return stamp_.bytes; }  // when it was opened

  // Reads exactly that range, by pread: a file that was cut or changed meanwhile is FormatError(file_truncated, file_changed), never a signal.
  void read(std::uint64_t offset, std::span<std::byte> target) const;

  FileState state() const;
  // Throws unless the file is what it was. `changes`: others may write to it, and only a cut is refused.
  void require_unchanged(bool changes = false) const;
  [[noreturn]] void throw_failure(const Failure& failure, const char* asked) const;

  OpenFile(std::string path, os::Descriptor descriptor, const os::FileStamp& stamp)
      : path_(std::move(path)), descriptor_(std::move(descriptor)), stamp_(stamp) {}

 private:
  const std::string path_;
  const os::Descriptor descriptor_;
  const os::FileStamp stamp_;
};

// All of the file as one buffer, read-only, mapped now.
Buffer map_whole(const std::shared_ptr<const OpenFile>& file);

// The tensor over `mapped`, which is all of the file; or read, where its place does not suit its elements. Throws ArgumentError
// (unsupported_dtype) when berth has no such dtype.
Storage tensor_over(const Buffer& mapped, const OpenFile& file, const TensorEntry& entry);
Storage bytes_over(const Buffer& mapped, const TensorEntry& entry);
Storage read_tensor(const OpenFile& file, const TensorEntry& entry, const Place& place);

}  // namespace berth::files
