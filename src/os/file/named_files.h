// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "berth/base/result.h"
#include "os/file/descriptor.h"
#include "os/file/shared_file.h"

// Named files in a directory that belongs to the user. A file is linked under its name atomically, when it is
// complete, and only if the name is free. Links are never followed. Any thread.
namespace berth::internal::os {

// Opens the directory. It must belong to this user and be inaccessible to others, else `untrusted`. A missing
// directory is created if `make` is set, else `not_found`.
Result<Descriptor> open_own_folder(const char* path, bool make) noexcept;
void remove_empty_folder(const char* path) noexcept;  // no effect when it is not empty

// Creates an unnamed file in the directory's file system, inaccessible to others whatever the umask.
Result<Descriptor> make_unnamed_file(int folder) noexcept;
Status set_file_size(int descriptor, std::uint64_t bytes) noexcept;
// `already_exists` when the name is taken; `not_found` when the directory was removed.
Status give_name(int descriptor, int folder, const char* name) noexcept;

// Opens any kind of file, without blocking and without following a link.
Result<Descriptor> open_named(int folder, const char* name) noexcept;
Result<FileFacts> facts_of_name(int folder, const char* name) noexcept;
Status remove_name(int folder, const char* name) noexcept;
Status rename_name(int folder, const char* from, const char* to) noexcept;  // replaces what is at `to`
Result<std::vector<std::string>> names_in(int folder);

std::uint64_t free_bytes_of(int folder) noexcept;  // of its file system; 0 when unknown

}  // namespace berth::internal::os
