// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "berth/base/result.h"

// Files that berth appends to while it runs. (Those that appear as a whole are in os/file/new_file.h.) One thread
// at a time for each file.
namespace berth::internal::os {

// Creates an empty file, open for appending; an existing one is emptied. As long as the descriptor, which is
// close-on-exec, is open, the file is this process's: fails with `busy` when it is another's. The path may come
// from the environment: fails with `untrusted` where it is a link, or anything but a regular file of this user
// with this one name.
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
