// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "berth/base/result.h"

// Files that berth reads.
namespace berth::internal::os {

// The bytes of a file, mapped and not copied. Who cuts the file while they are read ends the process with a signal: for files of the user's
// own that nobody is writing.
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

// Fails for what is not a regular file: `unsupported`, so that the caller may read it in another way.
Result<MappedFile> map_file(const char* path) noexcept;

// The size of a regular file below a folder. No link is followed on the way, so that a name from outside cannot lead out of the folder: then
// the failure is `path_escape`. The folder "" is the one that the process is in.
Result<std::uint64_t> size_beneath(const char* folder, const char* path) noexcept;

}  // namespace berth::internal::os
