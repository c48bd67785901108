// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "berth/base/result.h"

// Files that berth reads. Any thread.
namespace berth::internal::os {

// Reads a whole file, pipe or device by system calls: another process may cut the file at any time, and a mapping
// would raise a signal then. It keeps the thread's time (base/allowance.h) between pieces, and while a pipe is silent. Fails
// with
//   io_error     a regular file is shorter than it was when it was opened, or than its size says, as files of the kernel
//                are; or it waits for more to be written, as its log does
//   timeout      a FIFO has no writer, for so long
//   unsupported  the path is a folder, or there are more bytes than `most`
Result<std::string> read_whole(const char* path, std::size_t most, std::chrono::milliseconds patience);

// The size of a regular file beneath a directory. No link is followed, so that an untrusted path cannot lead
// out of the directory: one that tries fails with `path_escape`. An empty `folder` means the current directory.
Result<std::uint64_t> size_beneath(const char* folder, const char* path) noexcept;

}  // namespace berth::internal::os
