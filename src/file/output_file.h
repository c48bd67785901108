// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "berth/storage/storage.h"
#include "os/file/new_file.h"

// What the writers of all formats share.
namespace berth::internal::file {

// A file that appears under its name when it is whole (os/file/new_file.h), with errors thrown.
class OutputFile {
 public:
  // Room for all of it is taken now, where the file system can.
  OutputFile(const std::string& path, std::uint64_t bytes);

  void write(std::uint64_t offset, std::string_view bytes) const;
  void write(std::uint64_t offset, std::span<const std::byte> bytes) const;
  void commit();

 private:
  std::string path_;
  os::NewFile file_;
};

// The elements in C order, as the host sees them: the storage's own bytes where that can be, else those of a copy. What is of a mapped file
// has been looked at.
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
