// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "berth/storage/storage.h"
#include "os/file/new_file.h"

// Helpers of the writers of all formats. One thread at a time.
namespace berth::internal::file {

// A file that appears under its path atomically, on commit (os/file/new_file.h). Errors are thrown.
class OutputFile {
 public:
  // Reserves disk space for the whole file, where the file system can.
  OutputFile(const std::string& path, std::uint64_t bytes);

  void write(std::uint64_t offset, std::string_view bytes) const;
  void write(std::uint64_t offset, std::span<const std::byte> bytes) const;
  void commit();

 private:
  std::string path_;
  os::NewFile file_;
};

// The elements in C order, in host memory: the storage's own bytes if possible, else a copy. Bytes of a mapped
// file have been checked.
class HostBytes {
 public:
  explicit HostBytes(const Storage& storage);
  std::span<const std::byte> span() const noexcept { return {static_cast<const std::byte*>(held_.data_ptr()), held_.size_bytes()}; }

 private:
  Storage held_;
};

// Throws ArgumentError(invalid_name) for a name that is not UTF-8, or has a zero byte in it.
void require_text_name(std::string_view name, std::string_view asked);

}  // namespace berth::internal::file
