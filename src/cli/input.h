// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

// Input and output files of the subcommands.
namespace berth::internal::cli {

struct Input {
  std::string bytes;       // decompressed
  std::size_t room_bytes;  // what reading it may take in all, these bytes included
};

// Reads a whole file, decompressed if it is gzip. `room_bytes` is for all that reading takes; 0: the larger of 40
// times the file's size on disk and 256 MiB. Throws ArgumentError when it cannot be read (it does not exist, is a
// folder or a FIFO that nobody writes to, or is cut meanwhile), FormatError when it is a truncated gzip file or takes
// more than that.
Input read_input(const std::string& path, std::size_t room_bytes = 0);

// Parses what --max-memory says; empty: 0.
std::size_t parse_room(const std::string& text);

// Writes a whole file, which appears at once and with all of its bytes, or not at all; or to a pipe or a device that
// is there. Throws ArgumentError on failure.
void write_output(const std::string& path, std::string_view bytes);

}  // namespace berth::internal::cli
