// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// The words by which processes share storages. What may become of them is in share/claims.h; docs/sharing.md draws it.
//
// A segment has *slots*, one for each storage that other processes know, and *tickets*, one for each reference that is on its way to
// someone. A reference is a bit in a slot (one for each process, its *row*) or a ticket that names the slot. Nothing counts references:
// each is a claim of its own, made and dropped in a single atomic step by one party, so that a death at any point leaves claims whose
// owner the kernel knows to be dead. Rows and *leases* (the life of a channel, for tickets in flight) have a lock of the kernel each; to
// reap one is to hold its lock and drop its claims, which is the same however often it is begun.
namespace berth::internal::share {

using Word = std::uint64_t;

// Where the words are.
struct Layout {
  std::uint32_t slots = 0;
  std::uint32_t tickets = 0;
  std::uint32_t masks = 0;  // words of 64 rows each

  static constexpr std::uint32_t kOrphan = 0;       // 1 once the process that gives out the memory is known to be dead; then it stays 1
  static constexpr std::uint32_t kSlotsUsed = 1;    // no slot from here on was ever used
  static constexpr std::uint32_t kTicketsUsed = 2;  // and no ticket
  static constexpr std::uint32_t kReleases = 3;     // goes up when a claim is dropped: a hint that something may be free now
  static constexpr std::uint32_t kRowsUsed = 4;     // no row from here on was ever used
  static constexpr std::uint32_t kHead = 8;

  constexpr std::uint32_t slot_words() const noexcept { return 4 + masks; }
  constexpr std::uint32_t slot(std::uint32_t i) const noexcept { return kHead + i * slot_words(); }  // its state
  constexpr std::uint32_t version(std::uint32_t i) const noexcept { return slot(i) + 1; }            // goes up when a claim changes kind
  constexpr std::uint32_t offset(std::uint32_t i) const noexcept { return slot(i) + 2; }             // of the bytes, in the file
  constexpr std::uint32_t bytes(std::uint32_t i) const noexcept { return slot(i) + 3; }
  constexpr std::uint32_t mask(std::uint32_t i, std::uint32_t row) const noexcept { return slot(i) + 4 + row / 64; }
  constexpr std::uint32_t ticket(std::uint32_t j) const noexcept { return kHead + slots * slot_words() + j; }
  constexpr std::uint32_t rows() const noexcept { return masks * 64; }
  constexpr std::uint32_t row_label(std::uint32_t r) const noexcept { return ticket(tickets) + r; }  // not 0 while it may have claims
  constexpr std::uint32_t words() const noexcept { return row_label(rows()); }

  friend bool operator==(const Layout&, const Layout&) = default;
};

constexpr Word bit_of(std::uint32_t row) noexcept { return Word{1} << (row % 64); }

// A slot's state: whether it is live, and how often it was used before.
constexpr Word live_slot(std::uint64_t generation) noexcept { return generation << 1 | 1; }
constexpr bool is_live(Word slot) noexcept { return (slot & 1) != 0; }
constexpr std::uint64_t slot_generation(Word slot) noexcept { return slot >> 1; }
constexpr Word next_free_slot(Word slot) noexcept { return (slot_generation(slot) + 1) << 1; }

// A ticket: generation (28 bits) | state (3) | holder (13) | slot (20).
enum class TicketState : unsigned char { free = 0, held = 1, importing = 2 };

// Whose claim a ticket is: that of a row, or of a lease.
using HolderId = std::uint32_t;
inline constexpr HolderId kFirstLease = 0x1000;
inline constexpr std::uint32_t kMostLeases = 0x1000;
inline constexpr HolderId kNoHolder = 0xffff;  // never in a word
constexpr bool is_lease(HolderId holder) noexcept { return holder >= kFirstLease; }

struct TicketWord {
  std::uint32_t generation = 0;
  TicketState state = TicketState::free;
  HolderId holder = 0;
  std::uint32_t slot = 0;

  static constexpr std::uint32_t kGenerations = 1U << 28;
  static constexpr std::uint32_t kSlots = 1U << 20;

  constexpr Word pack() const noexcept {
    return Word{generation % kGenerations} << 36 | Word{static_cast<unsigned char>(state)} << 33 | Word{holder} << 20 | slot;
  }
  static constexpr TicketWord of(Word word) noexcept {
    return {static_cast<std::uint32_t>(word >> 36), static_cast<TicketState>(word >> 33 & 7), static_cast<HolderId>(word >> 20 & 0x1fff),
            static_cast<std::uint32_t>(word & (kSlots - 1))};
  }
  constexpr bool is_free() const noexcept { return state == TicketState::free; }
  constexpr Word freed() const noexcept { return TicketWord{(generation + 1) % kGenerations, TicketState::free, 0, 0}.pack(); }
};

}  // namespace berth::internal::share
