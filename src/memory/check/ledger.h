// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

#include "berth/device/stream.h"
#include "berth/memory/allocator.h"
#include "memory/check/guard.h"
#include "memory/judge.h"
#include "memory/live_table.h"
#include "memory/usage.h"

// The table of the check adaptor: blocks that are live, those in quarantine, and those that left it recently.
// The states of an entry:
//
//     unused -> live -> leaving -> quarantined -> leaving -> gone -> unused
//
// (An entry may skip the quarantine.) The thread that took an entry, or made it leave, owns it exclusively and
// may change it without a lock, except for its state, its block and its sites once it has been entered: other
// threads read those. Entries never move in memory. Not thread-safe: its owner locks.
namespace berth::internal::memory {

struct LedgerEntry {
  enum class State : unsigned char { unused, live, leaving, quarantined, gone };

  State state = State::unused;
  bool has_canary = false;         // to be checked
  bool has_poison = false;         // to be checked
  bool leaves_now = false;         // freed with deallocate_now, in a hold: it leaves when the hold ends
  bool was_written = false;        // a fill may be pending in its stream: the memory must stay until then
  bool is_closed = false;          // its guarded pages are inaccessible
  bool has_other_streams = false;  // streams other than its own may have work on it at any time
  Block block;                     // as handed out; its cookie is the number of this entry
  Block below;                     // as upstream knows it
  GuardedPages guard;
  Stream stream;
  CallSite allocated;
  CallSite freed;
  LedgerEntry* next = nullptr;  // in its queue

  KnownBlock known() const noexcept {
    return {.bytes = block.bytes,
            .alignment = block.alignment,
            .serial = block.serial,
            .stream_id = block.stream_id,
            .allocator_id = block.allocator_id,
            .tag = block.tag,
            .live = state == State::live};
  }
};

// A FIFO queue.
class LedgerQueue {
 public:
  LedgerEntry* first() const noexcept { return first_; }
  std::size_t size() const noexcept { return size_; }
  void push(LedgerEntry& entry) noexcept;

  // Removes and returns the first entry for which `wanted` is true; nullptr when there is none.
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
  static constexpr std::size_t kHistory = 4096;  // entries in state gone that are kept for reports

  // Returns an unused entry; nullptr when there is no heap for it.
  LedgerEntry* take() noexcept;
  void put_back(LedgerEntry& entry) noexcept;

  // The block becomes live: sets its serial and cookie. Returns false, with nothing changed, when there is no
  // heap. REQUIRES: the entry is unused.
  bool enter(LedgerEntry& entry, Block& block) noexcept;

  // The entry of a block in any state, or of the latest block at an address; nullptr when nothing is known.
  LedgerEntry* find(const Block& block) noexcept;
  BlockVerdict judge(const LedgerEntry* entry, const Block& block) const noexcept;

  void leave(LedgerEntry& entry) noexcept;       // REQUIRES: live
  void quarantine(LedgerEntry& entry) noexcept;  // REQUIRES: leaving
  void forget(LedgerEntry& entry) noexcept;      // REQUIRES: leaving

  // Takes the first entry for which `wanted` is true out of quarantine; its state becomes leaving.
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

  // In use, live blocks, allocations, frees and the peak in use; upstream knows the rest.
  Stats counts() const noexcept { return usage_.stats(); }
  std::vector<Holder> holders() const { return usage_.holders(); }
  std::string audit() const;

 private:
  LedgerEntry* find_by_address(const void* data) noexcept;

  std::deque<LedgerEntry> entries_;
  LiveTable live_;                     // by address, to the entry's number; size() == usage_.live_blocks()
  LedgerQueue quarantined_;            // all entries in that state
  std::size_t quarantined_bytes_ = 0;  // the sum of their blocks
  LedgerQueue gone_;                   // entries in state gone or unused, oldest first
  std::uint64_t next_serial_ = 1;
  Usage usage_;
};

}  // namespace berth::internal::memory
