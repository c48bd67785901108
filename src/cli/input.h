// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "os/file/read_file.h"

// What sub-commands read from, and write to.
namespace berth::internal::cli {

// All bytes of a file, unpacked when it is gzip. Throws ArgumentError when the system does not give them (it is not there, or a folder),
// FormatError when it is no whole gzip file or holds more than 4 GiB.
std::string read_input(const std::string& path);

// The bytes of a file: mapped, or as of read_input when it is gzip or no regular file. Throws as read_input does.
class Input {
 public:
  explicit Input(const std::string& path);
  std::string_view bytes() const noexcept { return copied_.empty() ? mapped_.bytes() : std::string_view(copied_); }

 private:
  os::MappedFile mapped_;
  std::string copied_;
};

// Writes a file whole, replacing one that is there. Throws ArgumentError when it cannot.
void write_output(const std::string& path, std::string_view bytes);

}  // namespace berth::internal::cli
