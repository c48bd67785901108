// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "berth/base/result.h"
#include "os/file/descriptor.h"
#include "os/file/shared_file.h"

// Files with names in a folder of the user's own. A file gets its name when it is complete, in one step, and only if the name is free.
// Links are never followed.
namespace berth::internal::os {

// The folder, open. It must be this user's, with no rights for others: `untrusted` if not. Made when `make` says so and it is not there, else
// `not_found`.
Result<Descriptor> open_own_folder(const char* path, bool make) noexcept;
void remove_empty_folder(const char* path) noexcept;  // does nothing when it is not empty

// A file in the folder's file system, without a name, with no rights for others whatever the process's mask.
Result<Descriptor> make_unnamed_file(int folder) noexcept;
Status set_file_size(int descriptor, std::uint64_t bytes) noexcept;
// `already_exists` when the name is taken; `not_found` when the folder is gone.
Status give_name(int descriptor, int folder, const char* name) noexcept;

// Also when it is not a regular file: it is opened without waiting and without following.
Result<Descriptor> open_named(int folder, const char* name) noexcept;
Result<FileFacts> facts_of_name(int folder, const char* name) noexcept;
Status remove_name(int folder, const char* name) noexcept;
Result<std::vector<std::string>> names_in(int folder);

std::uint64_t free_bytes_of(int folder) noexcept;  // of its file system; 0 when unknown

}  // namespace berth::internal::os
