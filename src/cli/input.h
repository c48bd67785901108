// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "os/file/read_file.h"

// Input and output files of the subcommands.
namespace berth::internal::cli {

// Reads a whole file, decompressed if it is gzip. Throws ArgumentError when it cannot be read (it does not
// exist, or is a directory), FormatError when it is a truncated gzip file or holds more than 4 GiB.
std::string read_input(const std::string& path);

// The bytes of a file: mapped, or from read_input when it is gzip or not a regular file. Throws as read_input
// does.
class Input {
 public:
  explicit Input(const std::string& path);
  std::string_view bytes() const noexcept { return copied_.empty() ? mapped_.bytes() : std::string_view(copied_); }

 private:
  os::MappedFile mapped_;
  std::string copied_;
};

// Writes a whole file, replacing an existing one. Throws ArgumentError on failure.
void write_output(const std::string& path, std::string_view bytes);

}  // namespace berth::internal::cli
