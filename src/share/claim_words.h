// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// The atomic words through which processes share storages. share/claims.h has every transition of them;
// docs/sharing.md draws the protocol.
//
// A segment has *entries*, one for each storage that other processes know, and *tickets*, one for each
// reference in flight. A reference is a bit in an entry (one for each process, its *row*) or a ticket that
// names the entry. There is no reference count: each reference is a claim of its own, made and dropped by one
// party in a single atomic operation, so that a death at any point leaves claims whose owner the kernel knows
// to be dead. Each row and each *lease* (the lifetime of a channel, for tickets in flight) has a file lock; to
// reap one is to acquire its lock and drop its claims, which is idempotent.
namespace berth::internal::share {

using Word = std::uint64_t;

// Indices of the words.
struct Layout {
  std::uint32_t entries = 0;
  std::uint32_t tickets = 0;
  std::uint32_t masks = 0;  // words of 64 rows each

  static constexpr std::uint32_t kOrphan = 0;       // stays 1 once the owner is known to be dead
  static constexpr std::uint32_t kEntriesUsed = 1;  // no entry from here on was ever used
  static constexpr std::uint32_t kTicketsUsed = 2;  // and no ticket
  static constexpr std::uint32_t kReleases = 3;     // dropped claims: a hint that something may be free
  static constexpr std::uint32_t kRowsUsed = 4;     // no row from here on was ever used
  static constexpr std::uint32_t kHead = 8;

  constexpr std::uint32_t entry_words() const noexcept { return 4 + masks; }
  // Index of its state.
  constexpr std::uint32_t entry(std::uint32_t i) const noexcept { return kHead + i * entry_words(); }
  // Incremented when a claim changes kind.
  constexpr std::uint32_t version(std::uint32_t i) const noexcept { return entry(i) + 1; }
  // Offset of the bytes in the file.
  constexpr std::uint32_t offset(std::uint32_t i) const noexcept { return entry(i) + 2; }
  constexpr std::uint32_t bytes(std::uint32_t i) const noexcept { return entry(i) + 3; }
  constexpr std::uint32_t mask(std::uint32_t i, std::uint32_t row) const noexcept { return entry(i) + 4 + row / 64; }
  constexpr std::uint32_t ticket(std::uint32_t j) const noexcept { return kHead + entries * entry_words() + j; }
  constexpr std::uint32_t rows() const noexcept { return masks * 64; }
  // Not 0 while the row may have claims.
  constexpr std::uint32_t row_label(std::uint32_t r) const noexcept { return ticket(tickets) + r; }
  constexpr std::uint32_t words() const noexcept { return row_label(rows()); }

  friend bool operator==(const Layout&, const Layout&) = default;
};

constexpr Word bit_of(std::uint32_t row) noexcept { return Word{1} << (row % 64); }

// An entry's state: its generation, and in bit 0 whether it is live.
constexpr Word live_entry(std::uint64_t generation) noexcept { return generation << 1 | 1; }
constexpr bool is_live(Word entry) noexcept { return (entry & 1) != 0; }
constexpr std::uint64_t entry_generation(Word entry) noexcept { return entry >> 1; }
constexpr Word next_free_entry(Word entry) noexcept { return (entry_generation(entry) + 1) << 1; }

// A ticket: generation (28 bits) | state (3) | holder (13) | entry (20).
enum class TicketState : unsigned char { free = 0, held = 1, importing = 2 };

// Who holds a ticket: a row, or a lease.
using HolderId = std::uint32_t;
inline constexpr HolderId kFirstLease = 0x1000;
inline constexpr std::uint32_t kMostLeases = 0x1000;
inline constexpr HolderId kNoHolder = 0xffff;  // never stored in a word
constexpr bool is_lease(HolderId holder) noexcept { return holder >= kFirstLease; }

struct TicketWord {
  std::uint32_t generation = 0;
  TicketState state = TicketState::free;
  HolderId holder = 0;
  std::uint32_t entry = 0;

  static constexpr std::uint32_t kGenerations = 1U << 28;
  static constexpr std::uint32_t kEntries = 1U << 20;

  constexpr Word pack() const noexcept {
    return Word{generation % kGenerations} << 36 | Word{static_cast<unsigned char>(state)} << 33 | Word{holder} << 20 | entry;
  }
  static constexpr TicketWord of(Word word) noexcept {
    return {static_cast<std::uint32_t>(word >> 36), static_cast<TicketState>(word >> 33 & 7), static_cast<HolderId>(word >> 20 & 0x1fff),
            static_cast<std::uint32_t>(word & (kEntries - 1))};
  }
  constexpr bool is_free() const noexcept { return state == TicketState::free; }
  constexpr Word freed() const noexcept { return TicketWord{(generation + 1) % kGenerations, TicketState::free, 0, 0}.pack(); }
};

}  // namespace berth::internal::share
