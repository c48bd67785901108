// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "berth/storage/storage.h"
#include "copy/mapped_bytes.h"
#include "os/file/new_file.h"

// Helpers of the writers of all formats. One thread at a time.
namespace berth::internal::file {

// A file that appears under its path atomically, on commit (os/file/new_file.h). Errors are thrown.
class OutputFile {
 public:
  // Reserves disk space for the whole file, where the file system can; asks first whether there is as much, so that a
  // file that does not fit never fills the disk.
  OutputFile(const std::string& path, std::uint64_t bytes);

  void write(std::uint64_t offset, std::string_view bytes) const;
  void commit();

 private:
  friend class HostBytes;

  std::string path_;
  os::NewFile file_;
};

// The elements in C order, in host memory: the storage's own bytes if possible, else a copy. Those of a mapped file
// are checked here and whenever they are touched: what is thrown then is about that file.
class HostBytes {
 public:
  explicit HostBytes(const Storage& storage);
  std::size_t size() const noexcept { return held_.size_bytes(); }
  void write_to(const OutputFile& file, std::uint64_t offset) const;
  std::uint32_t crc32(std::uint32_t sum) const;  // continues from `sum` (file/numpy/crc32.h)

 private:
  std::span<const std::byte> span() const noexcept { return {static_cast<const std::byte*>(held_.data_ptr()), held_.size_bytes()}; }

  Storage held_;
  copy::MappedTouches mapped_;
};

// Throws ArgumentError(invalid_name) for a name that is not UTF-8, or has a zero byte in it.
void require_text_name(std::string_view name, std::string_view asked);

}  // namespace berth::internal::file
