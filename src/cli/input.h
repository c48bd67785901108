// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

// What sub-commands read from.
namespace berth::cli {

// All bytes of a file, unpacked when it is gzip. Throws ArgumentError when it cannot be opened, FormatError when it cannot be read to its
// end or holds more than 4 GiB.
std::string read_input(const std::string& path);

}  // namespace berth::cli
