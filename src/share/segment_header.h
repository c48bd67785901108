// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "berth/base/result.h"
#include "share/claims.h"

// The first bytes of a segment. Whoever opens one copies them and believes nothing of the copy that was not checked against the file; the
// words behind them are believed only as far as share/claims.h and the size of the file allow.
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

  std::uint64_t magic = 0;  // written last, and so a sign that the rest is whole
  std::uint32_t version = 0;
  std::uint32_t layout_hash = 0;  // of the sizes and orders that both sides must agree on
  SegmentId id = {};
  std::uint64_t file_bytes = 0;
  std::uint64_t data_offset = 0;
  Layout layout = {};
  std::uint32_t description_bytes = 0;  // a named segment has one storage, which is described here
  std::uint64_t made_ns = 0;            // since 1970; a label
  std::array<std::byte, kDescriptionBytes> description = {};
};
static_assert(sizeof(SegmentHeader) <= 4096 && offsetof(SegmentHeader, description) == 72);

inline constexpr std::size_t kWordsOffset = 4096;

// What a header must say for this build to work with it.
std::uint32_t layout_hash() noexcept;
constexpr std::size_t control_bytes(const Layout& layout) noexcept { return kWordsOffset + std::size_t{layout.words()} * sizeof(Word); }

// Whether a copy of a header is one that this build can work with, in a file of that many bytes.
Status check_header(const SegmentHeader& copy, std::uint64_t file_bytes) noexcept;

// The bytes of the file on which processes have locks: far behind its end.
inline constexpr std::uint64_t kLocks = std::uint64_t{1} << 60;
constexpr std::uint64_t lock_of(HolderId holder) noexcept { return kLocks + holder; }  // of a row, or of a lease
inline constexpr std::uint64_t kGateLock = kLocks + (std::uint64_t{1} << 20);          // of a named segment: who opens or closes it now

}  // namespace berth::internal::share
