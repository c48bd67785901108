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

// Indices of the words. This is a file format: processes of different builds read it (see layout_hash).
struct Layout {
  std::uint32_t entries = 0;
  std::uint32_t tickets = 0;
  std::uint32_t masks = 0;  // words of kMaskRows rows each

  static constexpr std::uint32_t kOrphan = 0;       // kOwned or kOrphaned
  static constexpr std::uint32_t kEntriesUsed = 1;  // no entry from here on was ever used
  static constexpr std::uint32_t kTicketsUsed = 2;  // and no ticket
  static constexpr std::uint32_t kReleases = 3;     // dropped claims: a hint that something may be free
  static constexpr std::uint32_t kRowsUsed = 4;     // no row from here on was ever used
  static constexpr std::uint32_t kHead = 8;

  // The words of one entry, and then its masks.
  static constexpr std::uint32_t kState = 0;    // see live_entry
  static constexpr std::uint32_t kVersion = 1;  // incremented when a claim changes kind
  static constexpr std::uint32_t kOffset = 2;   // of the bytes in the file
  static constexpr std::uint32_t kBytes = 3;
  static constexpr std::uint32_t kMasks = 4;

  static constexpr std::uint32_t kMaskRows = 64;  // rows of one mask, a bit each

  constexpr std::uint32_t entry_words() const noexcept { return kMasks + masks; }
  constexpr std::uint32_t entry(std::uint32_t i) const noexcept { return kHead + i * entry_words() + kState; }
  constexpr std::uint32_t version(std::uint32_t i) const noexcept { return entry(i) + kVersion; }
  constexpr std::uint32_t offset(std::uint32_t i) const noexcept { return entry(i) + kOffset; }
  constexpr std::uint32_t bytes(std::uint32_t i) const noexcept { return entry(i) + kBytes; }
  constexpr std::uint32_t mask(std::uint32_t i, std::uint32_t row) const noexcept { return entry(i) + kMasks + row / kMaskRows; }
  constexpr std::uint32_t ticket(std::uint32_t j) const noexcept { return kHead + entries * entry_words() + j; }
  constexpr std::uint32_t rows() const noexcept { return masks * kMaskRows; }
  // kVacant, or a process id while the row may have claims.
  constexpr std::uint32_t row_label(std::uint32_t r) const noexcept { return ticket(tickets) + r; }
  constexpr std::uint32_t words() const noexcept { return row_label(rows()); }

  friend bool operator==(const Layout&, const Layout&) = default;
};

// Who holds a claim: a row, or a lease.
using HolderId = std::uint32_t;
inline constexpr HolderId kOwnerRow = 0;  // of the process that made the segment
inline constexpr HolderId kFirstLease = 0x1000;
inline constexpr std::uint32_t kMostLeases = 0x1000;
inline constexpr HolderId kNoHolder = 0xffff;  // never stored in a word
constexpr bool is_lease(HolderId holder) noexcept { return holder >= kFirstLease; }

// The orphan word. owned -> orphaned when a process reaps the owner's row; a segment never gets another owner.
inline constexpr Word kOwned = 0;
inline constexpr Word kOrphaned = 1;
constexpr bool is_orphan(Word word) noexcept { return word != kOwned; }

// A row's label. vacant -> process id when a process that has locked the row takes it; back when the process
// has dropped its claims, or was reaped. Reapers skip vacant rows.
inline constexpr Word kVacant = 0;

// A row's claim in its mask. Clear -> set by Publish and Import; set -> clear by Release and Reap.
constexpr Word bit_of(std::uint32_t row) noexcept { return Word{1} << (row % Layout::kMaskRows); }
constexpr bool holds_bit(Word mask, std::uint32_t row) noexcept { return (mask & bit_of(row)) != 0; }
inline constexpr Word kNoBits = 0;  // a mask without claims

// An entry's state: its generation, and in the lowest bit whether it is live. free(g) -> live(g) by Publish;
// live(g) -> free(g + 1) by Retire. All zeros is free(0).
inline constexpr Word kLiveBit = 1;
constexpr Word live_entry(std::uint64_t generation) noexcept { return generation << 1 | kLiveBit; }
constexpr bool is_live(Word entry) noexcept { return (entry & kLiveBit) != 0; }
constexpr std::uint64_t entry_generation(Word entry) noexcept { return entry >> 1; }
constexpr Word next_free_entry(Word entry) noexcept { return (entry_generation(entry) + 1) << 1; }

// A ticket's state. Every way back to `free` increments the generation, so that the bytes of a consumed ticket
// never match again.
enum class TicketState : unsigned char {
  free = 0,       // -> held by Export
  held = 1,       // -> importing by Import; -> free by Revoke, also when its holder is reaped
  importing = 2,  // its holder is the importing row: -> free by Import, or by Revoke when the row is reaped
};

// A ticket: generation (28 bits) | state (3) | holder (13) | entry (20). All zeros is free, generation 0.
struct TicketWord {
  std::uint32_t generation = 0;
  TicketState state = TicketState::free;
  HolderId holder = 0;
  std::uint32_t entry = 0;

  static constexpr unsigned kHolderShift = 20;
  static constexpr unsigned kStateShift = 33;
  static constexpr unsigned kGenerationShift = 36;
  static constexpr std::uint32_t kEntries = 1U << kHolderShift;
  static constexpr std::uint32_t kHolders = 1U << (kStateShift - kHolderShift);
  static constexpr std::uint32_t kStates = 1U << (kGenerationShift - kStateShift);
  static constexpr std::uint32_t kGenerations = 1U << (64 - kGenerationShift);

  constexpr Word pack() const noexcept {
    return Word{generation % kGenerations} << kGenerationShift | Word{static_cast<unsigned char>(state)} << kStateShift |
           Word{holder} << kHolderShift | entry;
  }
  static constexpr TicketWord of(Word word) noexcept {
    return {static_cast<std::uint32_t>(word >> kGenerationShift), static_cast<TicketState>(word >> kStateShift & (kStates - 1)),
            static_cast<HolderId>(word >> kHolderShift & (kHolders - 1)), static_cast<std::uint32_t>(word & (kEntries - 1))};
  }
  constexpr bool is_free() const noexcept { return state == TicketState::free; }
  constexpr Word freed() const noexcept { return TicketWord{(generation + 1) % kGenerations, TicketState::free, 0, 0}.pack(); }
};
static_assert(kFirstLease + kMostLeases <= TicketWord::kHolders && TicketWord::kGenerations == 1U << 28);

}  // namespace berth::internal::share
