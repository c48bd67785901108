// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "berth/base/result.h"
#include "os/file/descriptor.h"

// The address ranges of `shared`, and the files behind them. Each range is one file (os/file/shared_file.h)
// that other processes can map:
//
//     offset 0                     2 MiB                                                          end
//     | for share/: who holds what | the range, byte for byte; memory where it is committed        |
//
// share/ looks up the file position of an address, and ties its state for a range to the range's lifetime. Any
// thread.
namespace berth::internal::device {

inline constexpr std::uint64_t kSharedDataOffset = std::uint64_t{2} << 20;

struct SharedPosition {
  int descriptor = -1;       // of the file; the range keeps it open
  std::uint64_t offset = 0;  // of the address, in the file
  std::uint64_t range = 0;   // unique number of the range in this process
  std::uint64_t file_bytes = 0;
  std::byte* base = nullptr;  // address of the range in this process: the file's kSharedDataOffset
};

// The position of the bytes; nothing when they are not all in one range of this process. A range that was
// inherited by fork does not count.
std::optional<SharedPosition> find_shared_position(const void* address, std::size_t bytes) noexcept;

// The state that share/ keeps for the range, made by `make` on first use, or the failure to make it. It is
// destroyed with the range. `make` runs without a lock, and returns `busy` when another thread is making it,
// which is then waited for.
using SharedAttachment = std::shared_ptr<void>;
Result<SharedAttachment> shared_attachment(std::uint64_t range, Result<SharedAttachment> (*make)(const SharedPosition& position));

}  // namespace berth::internal::device
