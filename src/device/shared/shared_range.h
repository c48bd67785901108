// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "berth/base/result.h"
#include "os/file/descriptor.h"

// The address ranges of `shared`, and the files behind them. Each range is one file (os/file/shared_file.h), which other processes can map:
//
//     offset 0                     2 MiB                                                          end
//     | for share/: who holds what | the range, byte for byte; memory where it is committed        |
//
// share/ looks up where an address lies, and ties what it keeps for a range to the life of the range. Any thread.
namespace berth::internal::device {

inline constexpr std::uint64_t kSharedDataOffset = std::uint64_t{2} << 20;

struct SharedPlace {
  int descriptor = -1;       // of the file; the range keeps it open
  std::uint64_t offset = 0;  // of the address, in the file
  std::uint64_t range = 0;   // a number that no other range of this process has
  std::uint64_t file_bytes = 0;
  std::byte* base = nullptr;  // where the range is in this process: the file's kSharedDataOffset
};

// Where the bytes lie; nothing when they are not all in one range of this process. A range that was inherited by fork is not one.
std::optional<SharedPlace> find_shared_place(const void* address, std::size_t bytes) noexcept;

// What share/ keeps for the range, made by `make` if there is nothing yet, or why there is none. It goes with the range. `make` runs
// without a lock, and answers `busy` when another thread is at it already, which is then waited for.
using SharedAttachment = std::shared_ptr<void>;
Result<SharedAttachment> shared_attachment(std::uint64_t range, Result<SharedAttachment> (*make)(const SharedPlace& place));

}  // namespace berth::internal::device
