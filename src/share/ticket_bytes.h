// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "berth/base/dtype.h"
#include "berth/base/result.h"
#include "berth/base/shape.h"
#include "share/segment.h"

// The byte format of tickets and layouts. Little-endian, every field naturally aligned:
//
//     a layout   0 dtype u8 | 1 rank u8 | 2 read-only u8 | 3 zero u8 | 4 zero u32 | 8 offset i64 | 16 shape i64 × rank | strides i64 × rank
//     a ticket   0 "btk1" | 4 check u32 | 8 segment u64 × 2 | 24 ticket u32 | 28 its generation u32 | 32 entry u32 | 36 kind u16
//                38 further u16 | 40 entry's generation u64 | 48 (ticket u32, its generation u32) × further | a layout
//
// A ticket for several imports names as many tickets of the segment, all of one entry: each is imported once, so that
// several imports are no other protocol than one.
//
// The check is a checksum over everything else: it finds corruption, not malice. Nothing else here is trusted;
// the fields are validated against the segment when a ticket is used. `kind` is 0 for storages without bytes, whose
// shape has a 0, and whose other fields are 0 down to the layout's offset; 1 for those in a segment of host memory;
// and 2 for those on a device, whose entry has a stub (share/device_memory.h). Any thread.
namespace berth::internal::share {

struct StorageLayout {
  DType dtype = DType::u8;
  bool read_only = false;
  std::int64_t offset = 0;  // in elements
  Shape shape = {};
  Strides strides = {};
};

void append_layout(std::vector<std::byte>& out, const StorageLayout& layout);
// Reads exactly one layout and validates it.
Result<StorageLayout> read_layout(std::span<const std::byte> bytes);
// Whether all its elements are inside a buffer of that many bytes.
bool lies_inside(const StorageLayout& layout, std::uint64_t bytes) noexcept;

struct TicketContent {
  enum class Kind : std::uint16_t { no_bytes = 0, host_segment = 1, device_memory = 2 };
  Kind kind = Kind::no_bytes;
  struct Further {
    std::uint32_t ticket = 0;
    std::uint32_t generation = 0;
  };
  SegmentId segment = {};
  TicketName name = {};               // of the first import
  std::vector<Further> further = {};  // of the others
  StorageLayout layout = {};

  // Calls see(name) for the names of all imports, in order, until it returns true. Whether it did.
  template <class See>
  bool any_name(See see) const {
    if (see(name)) return true;
    for (const Further& one : further) {
      if (see(TicketName{one.ticket, one.generation, name.entry, name.entry_generation})) return true;
    }
    return false;
  }
};

std::vector<std::byte> ticket_bytes(const TicketContent& content);
Result<TicketContent> read_ticket(std::span<const std::byte> bytes);

}  // namespace berth::internal::share
