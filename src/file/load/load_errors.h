// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "berth/base/result.h"
#include "file/load/load_job.h"

// What is thrown when a file does not give what it has promised: with its path, the tensor, and the byte where it broke off.
namespace berth::internal::file::load {

[[noreturn]] void throw_unreadable(const LoadJob& job, const Piece& piece, std::uint64_t offset, const Failure& failure);
[[noreturn]] void throw_too_short(const LoadJob& job, const Piece& piece, std::uint64_t file_end);

}  // namespace berth::internal::file::load
