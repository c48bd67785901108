// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "berth/base/checked.h"
#include "os/clock.h"
#include "os/memory/memory.h"
#include "share/segment.h"

// How a segment drops the claims of dead processes, and frees lingering blocks and orphaned pages.
namespace berth::internal::share {

namespace {

constexpr std::uint64_t kReapEveryNs = 10'000'000;

}  // namespace

// REQUIRES: the holder's lock is held.
void Segment::reap_holder(HolderId holder) noexcept {
  if (run(Reap{.holder = holder}, words_, layout_).freed_any || holder == kOwnerRow) drop_unclaimed_pages();
}

// Reaps the holder if it is dead. One thread at a time: the kernel does not tell the threads of a process
// apart, so the first to finish would release the lock of the others.
void Segment::try_reap(HolderId holder) noexcept {
  const os::Lock lock(reaping_);
  const Result<bool> locked = os::try_lock_byte(lock_.number(), lock_of(holder));
  if (!locked || !*locked) return;
  reap_holder(holder);
  if (!is_lease(holder)) words_.store(layout_.row_label(holder), kVacant);
  os::unlock_byte(lock_.number(), lock_of(holder));
}

void Segment::reap() noexcept {
  if (is_inherited()) return;
  const std::uint32_t rows = static_cast<std::uint32_t>(std::min<Word>(words_.load(Layout::kRowsUsed), layout_.rows()));
  for (std::uint32_t row = 0; row < rows; ++row) {
    if (row != row_ && words_.load(layout_.row_label(row)) != kVacant) try_reap(row);
  }
  const std::uint32_t used = static_cast<std::uint32_t>(std::min<Word>(words_.load(Layout::kTicketsUsed), layout_.tickets));
  for (std::uint32_t i = 0; i < used; ++i) {
    const TicketWord ticket = TicketWord::of(words_.load(layout_.ticket(i)));
    if (!ticket.is_free() && is_lease(ticket.holder)) try_reap(ticket.holder);
  }
}

std::uint32_t Segment::entries_used() const noexcept {
  // Clamped: any process can write this hint.
  return static_cast<std::uint32_t>(std::min<Word>(words_.load(Layout::kEntriesUsed), layout_.entries));
}

// Decommits the pages of an orphan that lie wholly between the live entries before and after `offset`. Two
// processes may retire neighbours concurrently: each calls this after its own entry is free, so at least one of
// them sees the page between the two unused.
void Segment::drop_pages_around(std::uint64_t offset, std::uint64_t bytes) noexcept {
  const std::uint64_t page = os::page_bytes();
  if (!fits(offset, bytes, header_.file_bytes)) return;
  std::uint64_t from = header_.data_offset;
  std::uint64_t to = align_down(header_.file_bytes, page);
  const std::uint32_t used = entries_used();
  for (std::uint32_t i = 0; i < used; ++i) {
    if (!is_live(words_.load(layout_.entry(i)))) continue;
    const std::uint64_t begin = words_.load(layout_.offset(i));
    const std::uint64_t length = words_.load(layout_.bytes(i));
    if (!fits(begin, length, header_.file_bytes)) continue;
    if (begin <= offset) from = std::max(from, *try_align_up(begin + length, page));
    if (begin > offset) to = std::min(to, align_down(begin, page));
  }
  if (to > from) (void)os::punch_hole(lock_.number(), from, to - from).ok();
}

// The same for all of an orphan. The set of live entries only shrinks, so a stale view of it is safe.
void Segment::drop_unclaimed_pages() noexcept {
  if (!is_orphan(words_.load(Layout::kOrphan))) return;
  drop_pages_around(header_.file_bytes, 0);
  const std::uint32_t used = entries_used();
  for (std::uint32_t i = 0; i < used; ++i) {
    if (is_live(words_.load(layout_.entry(i)))) drop_pages_around(words_.load(layout_.offset(i)) - 1, 0);
  }
}

// Removes and returns the first lingering entry, at `from` or after, that has no claims; an empty node when
// there is none.
Segment::Entries::node_type Segment::take_retired(std::uint32_t from) noexcept {
  const os::Lock lock(mutex_);
  for (auto at = lingering_.lower_bound(from); at != lingering_.end(); ++at) {
    if (run(Retire{.entry = at->first}, words_, layout_).outcome != Outcome::done) continue;
    free_entries_.push_back(at->first);
    return lingering_.extract(at);
  }
  return {};
}

bool Segment::retire_lingering() noexcept {
  for (std::uint32_t from = 0;;) {
    Entries::node_type done = take_retired(from);
    if (done.empty()) return from != 0;
    from = done.key() + 1;
    done.mapped().block.give_back();
  }
}

void Segment::tidy() noexcept {
  if (is_inherited()) return;
  bool reaps = false;
  {
    const os::Lock lock(mutex_);
    if (is_own() && lingering_.empty()) return;
    const std::uint64_t now = os::coarse_time_ns();
    const Word releases = words_.load(Layout::kReleases);
    reaps = now - reaped_ns_ >= kReapEveryNs;
    if (!reaps && releases == releases_seen_) return;
    releases_seen_ = releases;
    if (reaps) reaped_ns_ = now;
  }
  if (reaps) reap();
  if (is_own()) retire_lingering();
}

}  // namespace berth::internal::share
