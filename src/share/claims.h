// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "share/claim_words.h"

// Every transition of the words of share/claim_words.h.
//
// There is no system call, no address and no lock here. Each operation below is a state machine that makes one
// access to the words per `step`, over any memory that has load, store, exchange_if (compare-and-swap),
// set_bits, clear_bits and add; every access is sequentially consistent. The library runs the state machines on
// mapped memory (share/words.h); a test explores all their interleavings, with a death at any step, on plain
// words (tests/share/explore_test.cc).
namespace berth::internal::share {

// How an operation has ended.
enum class Outcome : unsigned char { running, done, refused };

// ---- The operations. They are plain values: a copy continues where the original was. `step` makes one access;
// REQUIRES: outcome == running.

// The owner (row 0) publishes an entry, with its own claim on it.
struct Publish {
  std::uint32_t entry = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  Outcome outcome = Outcome::running;
  unsigned char at = 0;
  Word generation = 0;

  template <class Memory>
  void step(Memory& memory, const Layout& layout) noexcept {
    switch (at++) {
      case 0: generation = entry_generation(memory.load(layout.entry(entry))); return;
      case 1:  // first, since a reaper looks no farther; written by the owner alone
        if (memory.load(Layout::kEntriesUsed) <= entry) memory.store(Layout::kEntriesUsed, entry + 1);
        return;
      case 2: return memory.store(layout.offset(entry), offset);
      case 3: return memory.store(layout.bytes(entry), bytes);
      case 4: return memory.store(layout.mask(entry, 0), bit_of(0));
      default: memory.store(layout.entry(entry), live_entry(generation)); outcome = Outcome::done;
    }
  }
  friend bool operator==(const Publish&, const Publish&) = default;
};

// A process that has a claim on an entry makes a ticket for it. Refused: there is no free ticket.
struct Export {
  std::uint32_t entry = 0;
  HolderId holder = 0;
  std::uint32_t ticket = 0;      // in: where the search begins; out: the ticket
  std::uint32_t generation = 0;  // out: of the ticket
  Outcome outcome = Outcome::running;
  unsigned char at = 0;
  std::uint32_t looked = 0;
  Word seen = 0;

  template <class Memory>
  void step(Memory& memory, const Layout& layout) noexcept {
    switch (at) {
      case 0:
        seen = memory.load(layout.ticket(ticket));
        if (TicketWord::of(seen).is_free())
          at = 1;
        else
          try_next(layout);
        return;
      case 1:  // before the ticket exists, since a reaper looks no farther
        seen_used = memory.load(Layout::kTicketsUsed);
        at = seen_used > ticket ? 3 : 2;
        return;
      case 2: at = memory.exchange_if(Layout::kTicketsUsed, seen_used, ticket + 1) ? 3 : 1; return;
      case 3: {
        const TicketWord made{TicketWord::of(seen).generation, TicketState::held, holder, entry};
        generation = made.generation;
        if (memory.exchange_if(layout.ticket(ticket), seen, made.pack()))
          at = 4;
        else
          at = 0, try_next(layout);
        return;
      }
      default:  // before the exporter can drop its own claim
        memory.add(layout.version(entry), 1);
        outcome = Outcome::done;
    }
  }

  Word seen_used = 0;
  friend bool operator==(const Export&, const Export&) = default;

 private:
  constexpr void try_next(const Layout& layout) noexcept {
    if (++looked >= layout.tickets) outcome = Outcome::refused;
    ticket = (ticket + 1) % layout.tickets;
  }
};

// Frees the entry if there is no claim on it; of several callers one alone succeeds. Refused: there is a claim,
// or the entry was free. REQUIRES: the caller is the owner, or the segment is an orphan.
//
// The claims are not read atomically, and may move from a ticket to a bit or back during the scan. A mover
// makes the new claim, then increments the version, then drops the old claim; so if the version is the same
// before and after the scan, a claim that lived throughout was seen. Once there is no claim, none can appear: a
// claim is only made by a process that has one.
struct Retire {
  std::uint32_t entry = 0;
  Outcome outcome = Outcome::running;
  unsigned char at = 0;
  std::uint32_t index = 0;
  Word state = 0;
  Word version = 0;
  Word tickets_used = 0;

  template <class Memory>
  void step(Memory& memory, const Layout& layout) noexcept {
    switch (at) {
      case 0:
        state = memory.load(layout.entry(entry));
        go_on(is_live(state));
        return;
      case 1:
        version = memory.load(layout.version(entry));
        go_on(true);
        return;
      case 2:
        if (memory.load(layout.mask(entry, 64 * index)) != 0)
          outcome = Outcome::refused;
        else if (++index == layout.masks)
          at = 3, index = 0;
        return;
      case 3:
        tickets_used = memory.load(Layout::kTicketsUsed);
        at = tickets_used == 0 ? 5 : 4;
        return;
      case 4: {
        const TicketWord ticket = TicketWord::of(memory.load(layout.ticket(index)));
        if (!ticket.is_free() && ticket.entry == entry)
          outcome = Outcome::refused;
        else if (++index >= tickets_used || index >= layout.tickets)
          at = 5;
        return;
      }
      case 5: return go_on(memory.load(layout.version(entry)) == version);
      default: outcome = memory.exchange_if(layout.entry(entry), state, next_free_entry(state)) ? Outcome::done : Outcome::refused;
    }
  }
  friend bool operator==(const Retire&, const Retire&) = default;

 private:
  constexpr void go_on(bool yes) noexcept {
    if (yes)
      ++at;
    else
      outcome = Outcome::refused;
  }
};

// A ticket becomes the claim of a row. Refused: it was imported, refused or reaped before, or never existed.
struct Import {
  std::uint32_t ticket = 0;
  std::uint32_t generation = 0;  // of the ticket
  std::uint32_t entry = 0;
  std::uint64_t entry_gen = 0;
  std::uint32_t row = 0;
  Outcome outcome = Outcome::running;
  unsigned char at = 0;
  Word seen = 0;

  template <class Memory>
  void step(Memory& memory, const Layout& layout) noexcept {
    const TicketWord mine{generation, TicketState::importing, row, entry};
    switch (at) {
      case 0: {
        seen = memory.load(layout.ticket(ticket));
        const TicketWord there = TicketWord::of(seen);
        at = 1;
        if (there.state != TicketState::held || there.generation != generation || there.entry != entry) outcome = Outcome::refused;
        return;
      }
      case 1:  // from here on it is this row's, for reapers too
        at = memory.exchange_if(layout.ticket(ticket), seen, mine.pack()) ? 2 : 0;
        return;
      case 2: at = memory.load(layout.entry(entry)) == live_entry(entry_gen) ? 3 : 6; return;
      case 3:
        memory.set_bits(layout.mask(entry, row), bit_of(row));
        at = 4;
        return;
      case 4:
        memory.add(layout.version(entry), 1);
        at = 5;
        return;
      case 5:  // no other process changes a ticket in this state while the row lives
        memory.store(layout.ticket(ticket), mine.freed());
        outcome = Outcome::done;
        return;
      default:  // a forged ticket: a genuine one does not outlive its entry
        memory.store(layout.ticket(ticket), mine.freed());
        outcome = Outcome::refused;
    }
  }
  friend bool operator==(const Import&, const Import&) = default;
};

// Base of the operations that drop a claim. In an orphan, the process that drops a claim then tries to retire
// the entry.
struct Drops {
  std::uint32_t entry = 0;
  Outcome outcome = Outcome::running;
  unsigned char at = 0;
  bool retired = false;  // out: the entry is free, and this caller must free its memory
  Retire retire = {};

  friend bool operator==(const Drops&, const Drops&) = default;

 protected:
  // Steps 10 to 12, after the claim is gone.
  template <class Memory>
  void after_drop(Memory& memory, const Layout& layout) noexcept {
    switch (at) {
      case 10:
        memory.add(Layout::kReleases, 1);
        at = 11;
        return;
      case 11:  // after the drop: either this sees the orphan, or the process that marks it sees the drop
        if (memory.load(Layout::kOrphan) == 0) {
          outcome = Outcome::done;
          return;
        }
        retire = {.entry = entry};
        at = 12;
        return;
      default:
        retire.step(memory, layout);
        if (retire.outcome == Outcome::running) return;
        retired = retire.outcome == Outcome::done;
        outcome = Outcome::done;
    }
  }
};

// A row drops its claim on an entry. Idempotent.
struct Release : Drops {
  std::uint32_t row = 0;

  template <class Memory>
  void step(Memory& memory, const Layout& layout) noexcept {
    if (at >= 10) return after_drop(memory, layout);
    memory.clear_bits(layout.mask(entry, row), bit_of(row));
    at = 10;
  }
  friend bool operator==(const Release&, const Release&) = default;
};

// A ticket is revoked: by its exporter, by a receiver that refuses it, or by a process that reaps its holder.
// Refused: the ticket has changed or is gone.
struct Revoke : Drops {
  std::uint32_t ticket = 0;
  Word expected = 0;  // the whole word

  template <class Memory>
  void step(Memory& memory, const Layout& layout) noexcept {
    if (at >= 10) return after_drop(memory, layout);
    const TicketWord there = TicketWord::of(expected);
    entry = there.entry;
    if (memory.exchange_if(layout.ticket(ticket), expected, there.freed()))
      at = 10;
    else
      outcome = Outcome::refused;
  }
  friend bool operator==(const Revoke&, const Revoke&) = default;
};

// Drops every claim of a dead row or lease. REQUIRES: the caller holds its lock. Idempotent: if the caller
// dies, another process starts over.
struct Reap {
  HolderId holder = 0;
  Outcome outcome = Outcome::running;
  bool freed_any = false;  // out: entries became free here; the segment is an orphan
  unsigned char at = 0;
  std::uint32_t index = 0;
  Word used = 0;
  Release release = {};
  Revoke revoke = {};
  Retire retire = {};

  template <class Memory>
  void step(Memory& memory, const Layout& layout) noexcept {
    switch (at) {
      case 0:  // first, the owner's death: from here on every drop of a claim checks it
        at = is_lease(holder) ? 4 : 1;
        if (holder == 0) memory.store(Layout::kOrphan, 1);
        return;
      case 1:
        used = bounded(memory.load(Layout::kEntriesUsed), layout.entries);
        index = 0;
        at = used == 0 ? 4 : 2;
        return;
      case 2:
        if ((memory.load(layout.mask(index, holder)) & bit_of(holder)) == 0) return next_of(used, 2, 4);
        release = {};
        release.entry = index;
        release.row = holder;
        at = 3;
        return;
      case 3:
        release.step(memory, layout);
        if (release.outcome == Outcome::running) return;
        freed_any = freed_any || release.retired;
        return next_of(used, 2, 4);
      case 4:
        used = bounded(memory.load(Layout::kTicketsUsed), layout.tickets);
        index = 0;
        at = used == 0 ? 7 : 5;
        return;
      case 5: {
        const Word word = memory.load(layout.ticket(index));
        const TicketWord ticket = TicketWord::of(word);
        if (ticket.is_free() || ticket.holder != holder || ticket.entry >= layout.entries) return next_of(used, 5, 7);
        revoke = {};
        revoke.ticket = index;
        revoke.expected = word;
        at = 6;
        return;
      }
      case 6:
        revoke.step(memory, layout);
        if (revoke.outcome == Outcome::running) return;
        freed_any = freed_any || revoke.retired;
        return next_of(used, 5, 7);
      case 7:  // entries that lost their last claim before the segment was marked an orphan
        at = 8;
        if (holder != 0) outcome = Outcome::done;
        used = bounded(memory.load(Layout::kEntriesUsed), layout.entries);
        index = 0;
        retire = {.entry = 0};
        if (used == 0) outcome = Outcome::done;
        return;
      default:
        retire.step(memory, layout);
        if (retire.outcome == Outcome::running) return;
        freed_any = freed_any || retire.outcome == Outcome::done;
        retire = {.entry = ++index};
        if (index >= used) outcome = Outcome::done;
    }
  }
  friend bool operator==(const Reap&, const Reap&) = default;

 private:
  // Clamps a hint that another process may have corrupted.
  static constexpr Word bounded(Word value, std::uint32_t most) noexcept { return value < most ? value : most; }
  constexpr void next_of(Word end, unsigned char again, unsigned char after) noexcept {
    at = ++index < end ? again : after;
    if (at == after) index = 0;
  }
};

// Raises a monotonic word to at least `value`.
template <class Memory>
void raise_to(Memory& memory, std::uint32_t index, Word value) noexcept {
  for (Word seen = memory.load(index); seen < value && !memory.exchange_if(index, seen, value); seen = memory.load(index)) {
  }
}

// Runs an operation to completion.
template <class Operation, class Memory>
Operation run(Operation operation, Memory& memory, const Layout& layout) noexcept {
  while (operation.outcome == Outcome::running) operation.step(memory, layout);
  return operation;
}

}  // namespace berth::internal::share
