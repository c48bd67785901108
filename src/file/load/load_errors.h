// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "berth/base/result.h"
#include "file/load/load_job.h"

// Errors for files that cannot be read as their headers say, with the path, the tensor, and the byte at which
// reading failed. Any thread.
namespace berth::internal::file::load {

[[noreturn]] void throw_unreadable(const LoadJob& job, const Piece& piece, std::uint64_t offset, const Failure& failure);
[[noreturn]] void throw_too_short(const LoadJob& job, const Piece& piece, std::uint64_t file_end);

}  // namespace berth::internal::file::load
