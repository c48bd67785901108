// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "berth/base/result.h"

// Files that berth writes.
namespace berth::internal::os {

// An empty file, open for writing; one that was there loses its content. The descriptor is not inherited by programs that are started.
Result<int> create_file(const char* path) noexcept;

// All of the bytes at the end of the file, or a failure, after which any part of them may be there.
Status write_file(int descriptor, const void* bytes, std::size_t count) noexcept;

// Cuts the file to that length; later writes go on from there.
Status cut_file(int descriptor, std::uint64_t bytes) noexcept;

void close_file(int descriptor) noexcept;

// Gives a file another name, in place of one that has it, in one step; and takes a name away.
Status rename_file(const char* from, const char* to) noexcept;
void remove_file(const char* path) noexcept;

}  // namespace berth::internal::os
