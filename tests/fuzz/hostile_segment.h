// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>

#include <cstring>
#include <string>
#include <utility>

#include "device/shared/shared_range.h"
#include "fuzz/file.h"
#include "share/claim_words.h"
#include "share/segment_header.h"

// A segment that another process made: its header and its words are what the input says.
namespace berth::testing::fuzz {

class HostileSegment {
 public:
  static constexpr std::uint64_t kBytes = internal::device::kSharedDataOffset + (1 << 20);
  static constexpr internal::share::Layout kLayout{.entries = 16, .tickets = 16, .masks = 4};

  HostileSegment() {
    require(ftruncate(file_.number(), kBytes) == 0 && fcntl(file_.number(), F_ADD_SEALS, F_SEAL_SHRINK) == 0,
            "the machine has memory for a file");
  }

  int number() const noexcept { return file_.number(); }

  // Takes changes of a good header, and then words and what they are.
  void fill(Draw& draw) const {
    std::string all(internal::share::kWordsOffset + sizeof(internal::share::Word) * kLayout.words(), '\0');
    const internal::share::SegmentHeader good = header();
    std::memcpy(all.data(), &good, sizeof good);
    for (std::uint8_t left = draw.below(4); left > 0; --left) all[draw.byte()] = static_cast<char>(draw.byte());
    for (std::uint8_t left = draw.below(32); left > 0; --left) {
      const auto [index, value] = word_from(draw);
      std::memcpy(all.data() + internal::share::kWordsOffset + sizeof value * index, &value, sizeof value);
    }
    require(file_.write_at(0, all), "the machine has memory for a file");
  }

  static internal::share::SegmentHeader header() {
    return {.magic = internal::share::SegmentHeader::kMagic,
            .version = internal::share::SegmentHeader::kVersion,
            .layout_hash = internal::share::layout_hash(),
            .id = {1, 2},
            .file_bytes = kBytes,
            .data_offset = internal::device::kSharedDataOffset,
            .layout = kLayout};
  }

 private:
  static constexpr std::uint32_t kRows = 8;  // of the 256: the words of the others are like theirs

  static std::uint64_t position_from(Draw& draw) {
    const std::uint64_t pages = draw.byte();
    return draw.below(4) == 0 ? draw.number<std::uint64_t>() : internal::device::kSharedDataOffset + pages * 4096;
  }
  static std::uint64_t ticket_from(Draw& draw) {
    const std::uint8_t holder = draw.byte();
    return internal::share::TicketWord{.generation = draw.below(4),
                                       .state = static_cast<internal::share::TicketState>(draw.below(4)),
                                       .holder = holder < 128 ? holder : internal::share::kFirstLease + holder,
                                       .entry = draw.below(20)}
        .pack();
  }
  static std::pair<std::uint32_t, internal::share::Word> word_from(Draw& draw) {
    const std::uint8_t kind = draw.below(9);
    const std::uint32_t at = draw.below(kLayout.entries);
    switch (kind) {
      case 0: return {draw.below(internal::share::Layout::kHead), draw.below(32)};
      case 1: return {kLayout.entry(at), draw.below(8)};
      case 2: return {kLayout.version(at), draw.byte()};
      case 3: return {kLayout.offset(at), position_from(draw)};
      case 4: return {kLayout.bytes(at), draw.number<std::uint16_t>()};
      case 5: return {kLayout.mask(at, draw.byte()), draw.number<std::uint16_t>()};
      case 6: return {kLayout.ticket(at), ticket_from(draw)};
      case 7: return {kLayout.row_label(at % kRows), draw.byte()};
      default: return {draw.number<std::uint16_t>() % kLayout.words(), draw.number<std::uint64_t>()};
    }
  }

  File file_;
};

}  // namespace berth::testing::fuzz
