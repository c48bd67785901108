// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "berth/base/result.h"
#include "os/file/descriptor.h"

// Parts of a file that is open, read from any thread: the descriptor's own position is neither used nor moved. A signal is not an end, and
// neither is a short read; the end of the file is, and is told by a count that is less than what was asked for.
namespace berth::internal::os {

struct ReadTarget {
  void* data = nullptr;
  std::size_t bytes = 0;
};

// Fills the targets, one after another, with what the file has from `offset` on. The bytes read.
Result<std::size_t> read_parts(int descriptor, std::uint64_t offset, std::span<const ReadTarget> targets) noexcept;

// The same file once more, for reads that go past the page cache (O_DIRECT): straight from the disk, and nothing else is pushed out of
// memory for them. Offsets, sizes and addresses are multiples of kDirectAlignment. `unsupported` where the file system, or the way it is
// mounted, refuses.
inline constexpr std::size_t kDirectAlignment = 4096;
Result<Descriptor> reopen_direct(int descriptor) noexcept;

// Reads until `least` bytes are there or the file has ended; up to `target.bytes`, which the last block of the file need not fill.
// REQUIRES: a descriptor of reopen_direct; everything aligned but `least`, which is at most target.bytes.
Result<std::size_t> read_direct(int descriptor, std::uint64_t offset, const ReadTarget& target, std::size_t least) noexcept;

}  // namespace berth::internal::os
