// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "berth/base/result.h"

// Files that berth writes. One thread at a time for each file.
namespace berth::internal::os {

// Creates an empty file, open for appending; an existing file is truncated. The descriptor is close-on-exec.
Result<int> create_file(const char* path) noexcept;
// The same, and as long as the descriptor is open the file is this process's: fails with `busy` when it is
// another's.
Result<int> create_own_file(const char* path) noexcept;

// Appends all of the bytes. After a failure any prefix of them may have been written.
Status write_file(int descriptor, const void* bytes, std::size_t count) noexcept;

// Truncates the file to that length; later writes append from there.
Status cut_file(int descriptor, std::uint64_t bytes) noexcept;

void close_file(int descriptor) noexcept;

// Renames a file, atomically replacing one of that name; and unlinks one.
Status rename_file(const char* from, const char* to) noexcept;
void remove_file(const char* path) noexcept;

}  // namespace berth::internal::os
