// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "berth/base/result.h"
#include "os/file/descriptor.h"

// Positioned scatter reads from an open file, from any thread: the descriptor's own position is neither used
// nor changed. Interrupted and short reads are continued; a count below the requested one means the end of the
// file.
namespace berth::internal::os {

struct ReadTarget {
  void* data = nullptr;
  std::size_t bytes = 0;
};

// Fills the targets, one after another, from `offset` on. Returns the number of bytes read.
Result<std::size_t> read_parts(int descriptor, std::uint64_t offset, std::span<const ReadTarget> targets) noexcept;

// Reopens the file for reads that bypass the page cache (O_DIRECT), and so evict nothing from it. Offsets,
// sizes and addresses are multiples of kDirectAlignment. Fails with `unsupported` where the file system or its
// mount options do not allow it.
inline constexpr std::size_t kDirectAlignment = 4096;
Result<Descriptor> reopen_direct(int descriptor) noexcept;

// Reads until at least `least` bytes are read or the file ends, and at most `target.bytes`, which the last
// block of the file need not fill.
// REQUIRES: a descriptor of reopen_direct; everything aligned but `least`, which is at most target.bytes.
Result<std::size_t> read_direct(int descriptor, std::uint64_t offset, const ReadTarget& target, std::size_t least) noexcept;

}  // namespace berth::internal::os
