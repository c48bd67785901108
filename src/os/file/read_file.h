// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "berth/base/result.h"

// Files that berth reads. Any thread.
namespace berth::internal::os {

// The bytes of a file, mapped and not copied. Reading them raises SIGBUS if another process truncates the file:
// only for the user's own files that are not being written.
class MappedFile {
 public:
  MappedFile() noexcept = default;
  MappedFile(MappedFile&& other) noexcept : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MappedFile();

  std::string_view bytes() const noexcept { return {static_cast<const char*>(data_), bytes_}; }

 private:
  friend Result<MappedFile> map_file(const char* path) noexcept;
  MappedFile(void* data, std::size_t bytes) noexcept : data_(data), bytes_(bytes) {}

  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// Fails with `unsupported` when the path is not a regular file, so that the caller may read it in another way.
Result<MappedFile> map_file(const char* path) noexcept;

// The size of a regular file beneath a directory. No link is followed, so that an untrusted path cannot lead
// out of the directory: one that tries fails with `path_escape`. An empty `folder` means the current directory.
Result<std::uint64_t> size_beneath(const char* folder, const char* path) noexcept;

}  // namespace berth::internal::os
