// SPDX-License-Identifier: Apache-2.0
#include "share/segment_header.h"

#include "berth/base/checked.h"
#include "os/file/shared_file.h"

namespace berth::internal::share {

std::uint32_t layout_hash() noexcept {
  // Everything beside the version that two builds must agree on.
  constexpr std::uint32_t kOrder = 0x01020304;
  std::uint32_t hash = 2166136261U;
  const auto mix = [&](std::uint64_t value) {
    for (int i = 0; i < 8; ++i) hash = (hash ^ static_cast<std::uint32_t>(value >> (8 * i) & 0xff)) * 16777619U;
  };
  mix(static_cast<unsigned char>(*reinterpret_cast<const char*>(&kOrder)));
  mix(sizeof(void*));
  mix(sizeof(SegmentHeader));
  mix(Layout::kHead);
  mix(kWordsOffset);
  mix(TicketWord{1, TicketState::importing, 3, 4}.pack());
  return hash;
}

Result<SegmentHeader> make_header(const Layout& layout, std::uint64_t file_bytes, std::uint64_t data_offset) noexcept {
  SegmentHeader header{.magic = SegmentHeader::kMagic,
                       .version = SegmentHeader::kVersion,
                       .layout_hash = layout_hash(),
                       .file_bytes = file_bytes,
                       .data_offset = data_offset,
                       .layout = layout,
                       .made_ns = os::wall_time_ns()};
  if (const Status drawn = os::random_bytes(&header.id, sizeof header.id); !drawn) return drawn.failure();
  return header;
}

namespace {

// Whether the sizes are small enough that index computations fit in 32 bits.
bool is_sane(const Layout& layout) noexcept {
  return layout.entries >= 1 && layout.entries <= TicketWord::kEntries && layout.tickets >= 1 && layout.tickets <= (1U << 20) &&
         layout.masks >= 1 && layout.masks <= 16;
}

}  // namespace

Status check_header(const SegmentHeader& copy, std::uint64_t file_bytes) noexcept {
  if (copy.magic != SegmentHeader::kMagic) return Failure{ErrorCode::format_error, 0, "it is not a segment of berth, or is incomplete"};
  if (copy.version != SegmentHeader::kVersion || copy.layout_hash != layout_hash())
    return Failure{ErrorCode::version_mismatch, 0, "the segment was made by another version of berth, or for another kind of machine"};
  if (copy.file_bytes != file_bytes) return Failure{ErrorCode::format_error, 0, "the segment's size is not that of its file"};
  if (!is_sane(copy.layout)) return Failure{ErrorCode::format_error, 0, "the sizes of the segment's tables are invalid"};
  if (copy.data_offset > file_bytes || control_bytes(copy.layout) > copy.data_offset)
    return Failure{ErrorCode::format_error, 0, "the segment's tables do not fit before its data"};
  if (copy.description_bytes > SegmentHeader::kDescriptionBytes)
    return Failure{ErrorCode::format_error, 0, "the segment's description is longer than there is room for"};
  return {};
}

}  // namespace berth::internal::share
