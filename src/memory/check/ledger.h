// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

#include "berth/device/stream.h"
#include "berth/memory/allocator.h"
#include "memory/check/guard.h"
#include "memory/live_table.h"

// What the check adaptor knows of blocks: those that live, those in quarantine, and those that have left it not long ago. An entry goes
//
//     unused -> live -> leaving -> quarantined -> leaving -> gone -> unused
//
// (past the quarantine where it does not stay there). Whoever took it, or made it leave, has it alone, and may change it without a lock,
// but for its state, its block and its sites once it has been entered: those are looked at by others.
// Entries never move in memory. Not thread-safe: its owner locks.
namespace berth::internal::memory {

struct LedgerEntry {
  enum class State : unsigned char { unused, live, leaving, quarantined, gone };

  State state = State::unused;
  bool has_canary = false;         // to be looked at
  bool has_poison = false;         // to be looked at
  bool leaves_now = false;         // freed with deallocate_now, in a hold: it leaves when that ends
  bool was_written = false;        // a fill may be waiting in its stream: memory must stay until that is done
  bool is_closed = false;          // its guarded pages cannot be touched any more
  bool has_other_streams = false;  // than its own, which may be at work on it at any time
  Block block;                     // as handed out; its place is this entry's number
  Block below;                     // as upstream knows it
  GuardedPages guard;
  Stream stream;
  CallSite allocated;
  CallSite freed;
  LedgerEntry* next = nullptr;  // in its queue
};

// First in, first out.
class LedgerQueue {
 public:
  LedgerEntry* first() const noexcept { return first_; }
  std::size_t size() const noexcept { return size_; }
  void push(LedgerEntry& entry) noexcept;

  // Takes the first entry out for which `wanted` says so; nullptr when there is none.
  template <class Wanted>
  LedgerEntry* take(Wanted wanted) noexcept {
    LedgerEntry* before = nullptr;
    for (LedgerEntry* at = first_; at != nullptr; before = at, at = at->next) {
      if (wanted(*at)) return unlink(before, *at);
    }
    return nullptr;
  }

 private:
  LedgerEntry* unlink(LedgerEntry* before, LedgerEntry& entry) noexcept;

  LedgerEntry* first_ = nullptr;
  LedgerEntry* last_ = nullptr;
  std::size_t size_ = 0;
};

class Ledger {
 public:
  static constexpr std::size_t kHistory = 4096;  // entries that are gone, kept for reports

  // An unused entry; nullptr when there is no heap for it.
  LedgerEntry* take() noexcept;
  void put_back(LedgerEntry& entry) noexcept;

  // The block lives: gives it a serial and a place. False, with nothing changed, when there is no heap. REQUIRES: the entry is unused.
  bool enter(LedgerEntry& entry, Block& block) noexcept;

  // The entry of a block in whatever state, or of the latest block that was at an address; nullptr when nothing is known.
  LedgerEntry* find(const Block& block) noexcept;
  BlockVerdict judge(const LedgerEntry* entry, const Block& block) const noexcept;

  void leave(LedgerEntry& entry) noexcept;       // REQUIRES: live
  void quarantine(LedgerEntry& entry) noexcept;  // REQUIRES: leaving
  void forget(LedgerEntry& entry) noexcept;      // REQUIRES: leaving

  // Takes the first entry out of quarantine for which `wanted` says so: it is leaving.
  template <class Wanted>
  LedgerEntry* take_quarantined(Wanted wanted) noexcept {
    LedgerEntry* const entry = quarantined_.take(wanted);
    if (entry == nullptr) return nullptr;
    entry->state = LedgerEntry::State::leaving;
    quarantined_bytes_ -= entry->block.bytes;
    return entry;
  }
  std::size_t quarantined() const noexcept { return quarantined_.size(); }
  std::size_t quarantined_bytes() const noexcept { return quarantined_bytes_; }

  template <class Visit>
  void for_each_live(Visit visit) const {
    for (const LedgerEntry& entry : entries_) {
      if (entry.state == LedgerEntry::State::live) visit(entry);
    }
  }

  // In use, live blocks, allocations, frees and the peak in use; the rest is upstream's to say.
  const Stats& counts() const noexcept { return counts_; }
  std::string audit() const;

 private:
  LedgerEntry* find_by_address(const void* data) noexcept;

  std::deque<LedgerEntry> entries_;
  LiveTable live_;                     // by address; the serial there is the number of the entry. live_.size() == counts_.live_blocks
  LedgerQueue quarantined_;            // entries in that state, all of them
  std::size_t quarantined_bytes_ = 0;  // the sum of their blocks
  LedgerQueue gone_;                   // entries that are gone, or unused, longest ago first
  std::uint64_t next_serial_ = 1;
  Stats counts_;
};

}  // namespace berth::internal::memory
