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
//
// `at` is the next step. The steps of an enum follow one another, unless the comment names another successor
// ("-> take") or an end ("refused"). "free -> held" is a transition of a word that other processes see.

// The owner (row 0) publishes an entry, with its own claim on it.
struct Publish {
  enum Step : unsigned char {
    load_generation,  // of the free entry
    raise_used,       // before the entry is live, since a reaper looks no farther
    store_offset,
    store_bytes,
    set_own_bit,
    make_live,  // free(g) -> live(g); done
  };

  std::uint32_t entry = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  Outcome outcome = Outcome::running;
  Step at = load_generation;
  Word generation = 0;

  template <class Memory>
  void step(Memory& memory, const Layout& layout) noexcept {
    switch (at) {
      case load_generation:
        generation = entry_generation(memory.load(layout.entry(entry)));
        at = raise_used;
        return;
      case raise_used:  // two accesses count as one: the owner alone writes this word
        if (memory.load(Layout::kEntriesUsed) <= entry) memory.store(Layout::kEntriesUsed, entry + 1);
        at = store_offset;
        return;
      case store_offset:
        memory.store(layout.offset(entry), offset);
        at = store_bytes;
        return;
      case store_bytes:
        memory.store(layout.bytes(entry), bytes);
        at = set_own_bit;
        return;
      case set_own_bit:
        memory.store(layout.mask(entry, kOwnerRow), bit_of(kOwnerRow));
        at = make_live;
        return;
      case make_live: memory.store(layout.entry(entry), live_entry(generation)); outcome = Outcome::done;
    }
  }
  friend bool operator==(const Publish&, const Publish&) = default;
};

// A process that has a claim on an entry makes a ticket for it. Refused: there is no free ticket.
struct Export {
  enum Step : unsigned char {
    find_free,     // not free: again, with the next ticket; after the last: refused
    look_at_used,  // the hint covers the ticket: -> take
    raise_used,    // before the ticket exists, since a reaper looks no farther. Lost the race: -> look_at_used
    take,          // free -> held. Lost the race: -> find_free
    bump_version,  // before the exporter can drop its own claim; done
  };

  std::uint32_t entry = 0;
  HolderId holder = 0;
  std::uint32_t ticket = 0;      // in: where the search begins; out: the ticket
  std::uint32_t generation = 0;  // out: of the ticket
  Outcome outcome = Outcome::running;
  Step at = find_free;
  std::uint32_t looked = 0;
  Word seen = 0;

  template <class Memory>
  void step(Memory& memory, const Layout& layout) noexcept {
    switch (at) {
      case find_free:
        seen = memory.load(layout.ticket(ticket));
        if (TicketWord::of(seen).is_free())
          at = look_at_used;
        else
          try_next(layout);
        return;
      case look_at_used:
        seen_used = memory.load(Layout::kTicketsUsed);
        at = seen_used > ticket ? take : raise_used;
        return;
      case raise_used: at = memory.exchange_if(Layout::kTicketsUsed, seen_used, ticket + 1) ? take : look_at_used; return;
      case take: {
        const TicketWord made{TicketWord::of(seen).generation, TicketState::held, holder, entry};
        generation = made.generation;
        if (memory.exchange_if(layout.ticket(ticket), seen, made.pack()))
          at = bump_version;
        else
          try_next(layout);
        return;
      }
      case bump_version: memory.add(layout.version(entry), 1); outcome = Outcome::done;
    }
  }

  Word seen_used = 0;
  friend bool operator==(const Export&, const Export&) = default;

 private:
  constexpr void try_next(const Layout& layout) noexcept {
    at = find_free;
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
  enum Step : unsigned char {
    load_state,       // not live: refused
    load_version,     // of the start of the scan
    scan_masks,       // once for each mask. A bit is set: refused
    load_used,        // no ticket was ever used: -> compare_version
    scan_tickets,     // once for each. One names the entry: refused
    compare_version,  // a claim has moved: refused
    make_free,        // live(g) -> free(g + 1); done. Another caller was first: refused
  };

  std::uint32_t entry = 0;
  Outcome outcome = Outcome::running;
  Step at = load_state;
  std::uint32_t index = 0;
  Word state = 0;
  Word version = 0;
  Word tickets_used = 0;

  template <class Memory>
  void step(Memory& memory, const Layout& layout) noexcept {
    switch (at) {
      case load_state:
        state = memory.load(layout.entry(entry));
        go_on(is_live(state), load_version);
        return;
      case load_version:
        version = memory.load(layout.version(entry));
        at = scan_masks;
        return;
      case scan_masks:
        if (memory.load(layout.mask(entry, Layout::kMaskRows * index)) != kNoBits)
          outcome = Outcome::refused;
        else if (++index == layout.masks)
          at = load_used, index = 0;
        return;
      case load_used:
        tickets_used = memory.load(Layout::kTicketsUsed);
        at = tickets_used == 0 ? compare_version : scan_tickets;
        return;
      case scan_tickets: {
        const TicketWord ticket = TicketWord::of(memory.load(layout.ticket(index)));
        if (!ticket.is_free() && ticket.entry == entry)
          outcome = Outcome::refused;
        else if (++index >= tickets_used || index >= layout.tickets)
          at = compare_version;
        return;
      }
      case compare_version: return go_on(memory.load(layout.version(entry)) == version, make_free);
      case make_free: outcome = memory.exchange_if(layout.entry(entry), state, next_free_entry(state)) ? Outcome::done : Outcome::refused;
    }
  }
  friend bool operator==(const Retire&, const Retire&) = default;

 private:
  constexpr void go_on(bool yes, Step next) noexcept {
    if (yes)
      at = next;
    else
      outcome = Outcome::refused;
  }
};

// A ticket becomes the claim of a row. Refused: it was imported, refused or reaped before, or never existed.
struct Import {
  enum Step : unsigned char {
    look,          // not held, or another generation or entry: refused
    take,          // held -> importing: from here on it is this row's, for reapers too. Lost the race: -> look
    validate,      // the entry is not live(entry_gen): -> reject
    set_bit,       // the row's claim
    bump_version,  // between the new claim and the end of the old one
    consume,       // importing -> free; done
    reject,        // importing -> free; refused. Forged: a genuine ticket does not outlive its entry
  };

  std::uint32_t ticket = 0;
  std::uint32_t generation = 0;  // of the ticket
  std::uint32_t entry = 0;
  std::uint64_t entry_gen = 0;
  std::uint32_t row = 0;
  Outcome outcome = Outcome::running;
  Step at = look;
  Word seen = 0;

  template <class Memory>
  void step(Memory& memory, const Layout& layout) noexcept {
    const TicketWord mine{generation, TicketState::importing, row, entry};
    switch (at) {
      case look: {
        seen = memory.load(layout.ticket(ticket));
        const TicketWord there = TicketWord::of(seen);
        at = take;
        if (there.state != TicketState::held || there.generation != generation || there.entry != entry) outcome = Outcome::refused;
        return;
      }
      case take: at = memory.exchange_if(layout.ticket(ticket), seen, mine.pack()) ? validate : look; return;
      case validate: at = memory.load(layout.entry(entry)) == live_entry(entry_gen) ? set_bit : reject; return;
      case set_bit:
        memory.set_bits(layout.mask(entry, row), bit_of(row));
        at = bump_version;
        return;
      case bump_version:
        memory.add(layout.version(entry), 1);
        at = consume;
        return;
      case consume:
      case reject:  // a plain store: no other process changes a ticket in this state while the row lives
        memory.store(layout.ticket(ticket), mine.freed());
        outcome = at == consume ? Outcome::done : Outcome::refused;
    }
  }
  friend bool operator==(const Import&, const Import&) = default;
};

// Base of the operations that drop a claim. In an orphan, the process that drops a claim then tries to retire
// the entry.
struct Drops {
  enum Step : unsigned char {
    drop,             // of Release or Revoke. The ticket to revoke has changed: refused
    count_release,    // a hint to the owner that a lingering block may be free
    look_for_orphan,  // the owner lives, and is the one to retire: done
    retire_entry,     // the steps of `retire`; done, also when there is another claim
  };

  std::uint32_t entry = 0;
  Outcome outcome = Outcome::running;
  Step at = drop;
  bool retired = false;  // out: the entry is free, and this caller must free its memory
  Retire retire = {};

  friend bool operator==(const Drops&, const Drops&) = default;

 protected:
  // The steps after `drop`.
  template <class Memory>
  void after_drop(Memory& memory, const Layout& layout) noexcept {
    switch (at) {
      case drop: return;  // made by the derived operation
      case count_release:
        memory.add(Layout::kReleases, 1);
        at = look_for_orphan;
        return;
      case look_for_orphan:  // after the drop: this sees the orphan, or the process that marks it sees the drop
        if (!is_orphan(memory.load(Layout::kOrphan))) {
          outcome = Outcome::done;
          return;
        }
        retire = {.entry = entry};
        at = retire_entry;
        return;
      case retire_entry:
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
    if (at != drop) return after_drop(memory, layout);
    memory.clear_bits(layout.mask(entry, row), bit_of(row));
    at = count_release;
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
    if (at != drop) return after_drop(memory, layout);
    const TicketWord there = TicketWord::of(expected);
    entry = there.entry;
    if (memory.exchange_if(layout.ticket(ticket), expected, there.freed()))
      at = count_release;
    else
      outcome = Outcome::refused;
  }
  friend bool operator==(const Revoke&, const Revoke&) = default;
};

// Drops every claim of a dead row or lease. REQUIRES: the caller holds its lock. Idempotent: if the caller
// dies, another process starts over.
struct Reap {
  enum Step : unsigned char {
    mark_orphan,    // if it was the owner; first, so that every later drop sees it. A lease: -> count_tickets
    count_entries,  // none was ever used: -> count_tickets
    find_bit,       // once for each entry. The row's bit is not set: again, and after the last -> count_tickets
    drop_bit,       // the steps of `release`; -> find_bit, and after the last entry -> count_tickets
    count_tickets,  // none was ever used: -> count_again
    find_ticket,    // once for each. Not of this holder: again, and after the last -> count_again
    drop_ticket,    // the steps of `revoke`; -> find_ticket, and after the last -> count_again
    count_again,    // not the owner, or no entries: done
    retire_entry,   // the steps of `retire`, for each: some lost their last claim before mark_orphan; done
  };

  HolderId holder = 0;
  Outcome outcome = Outcome::running;
  bool freed_any = false;  // out: entries became free here; the segment is an orphan
  Step at = mark_orphan;
  std::uint32_t index = 0;
  Word used = 0;
  Release release = {};
  Revoke revoke = {};
  Retire retire = {};

  template <class Memory>
  void step(Memory& memory, const Layout& layout) noexcept {
    switch (at) {
      case mark_orphan:
        at = is_lease(holder) ? count_tickets : count_entries;
        if (holder == kOwnerRow) memory.store(Layout::kOrphan, kOrphaned);
        return;
      case count_entries:
        used = bounded(memory.load(Layout::kEntriesUsed), layout.entries);
        index = 0;
        at = used == 0 ? count_tickets : find_bit;
        return;
      case find_bit:
        if (!holds_bit(memory.load(layout.mask(index, holder)), holder)) return next_of(used, find_bit, count_tickets);
        release = {};
        release.entry = index;
        release.row = holder;
        at = drop_bit;
        return;
      case drop_bit:
        release.step(memory, layout);
        if (release.outcome == Outcome::running) return;
        freed_any = freed_any || release.retired;
        return next_of(used, find_bit, count_tickets);
      case count_tickets:
        used = bounded(memory.load(Layout::kTicketsUsed), layout.tickets);
        index = 0;
        at = used == 0 ? count_again : find_ticket;
        return;
      case find_ticket: {
        const Word word = memory.load(layout.ticket(index));
        const TicketWord ticket = TicketWord::of(word);
        if (ticket.is_free() || ticket.holder != holder || ticket.entry >= layout.entries) return next_of(used, find_ticket, count_again);
        revoke = {};
        revoke.ticket = index;
        revoke.expected = word;
        at = drop_ticket;
        return;
      }
      case drop_ticket:
        revoke.step(memory, layout);
        if (revoke.outcome == Outcome::running) return;
        freed_any = freed_any || revoke.retired;
        return next_of(used, find_ticket, count_again);
      case count_again:
        at = retire_entry;
        if (holder != kOwnerRow) outcome = Outcome::done;
        used = bounded(memory.load(Layout::kEntriesUsed), layout.entries);
        index = 0;
        retire = {.entry = 0};
        if (used == 0) outcome = Outcome::done;
        return;
      case retire_entry:
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
  constexpr void next_of(Word end, Step again, Step after) noexcept {
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
