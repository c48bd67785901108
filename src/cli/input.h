// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

// Input and output files of the subcommands.
namespace berth::internal::cli {

// Reads a whole file, decompressed if it is gzip. Throws ArgumentError when it cannot be read (it does not
// exist, is a folder or a FIFO that nobody writes to, or is cut meanwhile), FormatError when it is a truncated gzip
// file or holds more than 4 GiB.
std::string read_input(const std::string& path);

// Writes a whole file, which appears at once and with all of its bytes, or not at all; or to a pipe or a device that
// is there. Throws ArgumentError on failure.
void write_output(const std::string& path, std::string_view bytes);

}  // namespace berth::internal::cli
