// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "berth/base/result.h"
#include "share/claims.h"

// The first bytes of a segment. A process that opens one copies them and validates the copy against the file
// before it uses it; the words behind them are trusted only as far as share/claims.h and the size of the file
// allow. Any thread.
//
//     0        4096      after the words      data_offset                       file_bytes
//     | header | words   | nothing            | the bytes of storages           |
namespace berth::internal::share {

struct SegmentId {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  friend auto operator<=>(const SegmentId&, const SegmentId&) = default;
};

struct SegmentHeader {
  static constexpr std::uint64_t kMagic = 0x3167'6573'6874'7265;  // "erthseg1", in memory
  static constexpr std::uint32_t kVersion = 1;
  static constexpr std::size_t kDescriptionBytes = 2048;

  std::uint64_t magic = 0;  // written last: the rest is complete
  std::uint32_t version = 0;
  std::uint32_t layout_hash = 0;  // of the sizes and byte order that both sides must agree on
  SegmentId id = {};
  std::uint64_t file_bytes = 0;
  std::uint64_t data_offset = 0;
  Layout layout = {};
  std::uint32_t description_bytes = 0;  // of `description`: the one storage of a named segment
  std::uint64_t made_ns = 0;            // since 1970; informational
  std::array<std::byte, kDescriptionBytes> description = {};
};
static_assert(sizeof(SegmentHeader) <= 4096 && offsetof(SegmentHeader, description) == 72);

inline constexpr std::size_t kWordsOffset = 4096;

// The layout_hash that a header must have to be compatible with this build.
std::uint32_t layout_hash() noexcept;
constexpr std::size_t control_bytes(const Layout& layout) noexcept { return kWordsOffset + std::size_t{layout.words()} * sizeof(Word); }

// The header of a new segment, with a random id and the time of day. Fails where the system gives no random bytes.
Result<SegmentHeader> make_header(const Layout& layout, std::uint64_t file_bytes, std::uint64_t data_offset) noexcept;

// Validates a copy of a header, of a file with that many bytes.
Status check_header(const SegmentHeader& copy, std::uint64_t file_bytes) noexcept;

// The bytes of the file that processes lock: far past its end.
inline constexpr std::uint64_t kLocks = std::uint64_t{1} << 60;
// The lock of a row, or of a lease.
constexpr std::uint64_t lock_of(HolderId holder) noexcept { return kLocks + holder; }
inline constexpr std::uint64_t kGateLock = kLocks + (std::uint64_t{1} << 20);  // of a named segment

}  // namespace berth::internal::share
