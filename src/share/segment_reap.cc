// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bitset>
#include <memory>
#include <new>

#include "berth/base/checked.h"
#include "os/clock.h"
#include "os/memory/memory.h"
#include "os/system.h"
#include "share/segment.h"

// How a segment drops the claims of dead processes, and frees lingering blocks and orphaned pages.
namespace berth::internal::share {

namespace {

constexpr std::uint64_t kReapEveryNs = 10'000'000;
// How long that takes at most, beyond the holder that it is at: a peer that fills the tables with claims of the dead gets
// half of the time of a process that uses its segment.
constexpr std::uint64_t kReapMostNs = kReapEveryNs;

}  // namespace

// Whether pages may have lost their last claim. REQUIRES: the holder's lock is held.
bool Segment::drop_claims(HolderId holder) noexcept {
  return run(Reap{.holder = holder}, words_, layout_).freed_any || holder == kOwnerRow;
}

void Segment::reap_holder(HolderId holder) noexcept {
  if (drop_claims(holder)) drop_unclaimed_pages();
}

// Drops the claims of the holder if it is dead. One thread at a time: the kernel does not tell the threads of a process
// apart, so the first to finish would release the lock of the others.
bool Segment::drop_claims_if_dead(HolderId holder) noexcept {
  const os::Lock lock(reaping_);
  const Result<bool> locked = os::try_lock_byte(lock_.number(), lock_of(holder));
  if (!locked || !*locked) return false;
  const bool freed = drop_claims(holder);
  if (!is_lease(holder)) words_.store(layout_.row_label(holder), kVacant);
  os::unlock_byte(lock_.number(), lock_of(holder));
  return freed;
}

void Segment::try_reap(HolderId holder) noexcept {
  if (drop_claims_if_dead(holder)) drop_unclaimed_pages();
}

// Each holder is looked at once, and pages are dropped once for all: a peer may have filled the tables to make this
// slow.
void Segment::reap(std::uint64_t deadline_ns) noexcept {
  if (is_inherited()) return;
  bool freed = false;
  const auto in_time = [&] { return deadline_ns == kNoDeadline || os::steady_time_ns() < deadline_ns; };
  const std::uint32_t rows = static_cast<std::uint32_t>(std::min<Word>(words_.load(Layout::kRowsUsed), layout_.rows()));
  for (std::uint32_t row = 0; row < rows && in_time(); ++row) {
    if (row != row_ && words_.load(layout_.row_label(row)) != kVacant) freed = drop_claims_if_dead(row) || freed;
  }
  const std::uint32_t used = static_cast<std::uint32_t>(std::min<Word>(words_.load(Layout::kTicketsUsed), layout_.tickets));
  std::bitset<kMostLeases> seen;
  for (std::uint32_t i = 0; i < used; ++i) {
    const TicketWord ticket = TicketWord::of(words_.load(layout_.ticket(i)));
    if (ticket.is_free() || !is_lease(ticket.holder) || seen[ticket.holder - kFirstLease]) continue;
    if (!in_time()) break;
    seen[ticket.holder - kFirstLease] = true;
    freed = drop_claims_if_dead(ticket.holder) || freed;
  }
  if (freed) drop_unclaimed_pages();
}

void Segment::reap_briefly() noexcept { reap(os::steady_time_ns() + kReapMostNs); }

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

// The same for all of an orphan. The set of live entries only shrinks, so a stale view of it is safe. Without heap the
// pages stay until the segment is reaped again.
void Segment::drop_unclaimed_pages() noexcept {
  if (!is_orphan(words_.load(Layout::kOrphan))) return;
  struct Range {
    std::uint64_t begin, end;
  };
  const std::uint32_t used = entries_used();
  const std::unique_ptr<Range[]> live(new (std::nothrow) Range[std::size_t{used} + 1]);
  if (live == nullptr) return;
  std::size_t count = 0;
  for (std::uint32_t i = 0; i < used; ++i) {
    if (!is_live(words_.load(layout_.entry(i)))) continue;
    const std::uint64_t begin = words_.load(layout_.offset(i));
    const std::uint64_t length = words_.load(layout_.bytes(i));
    if (fits(begin, length, header_.file_bytes)) live[count++] = {begin, begin + length};
  }
  std::sort(live.get(), live.get() + count, [](const Range& a, const Range& b) { return a.begin < b.begin; });
  live[count] = {align_down(header_.file_bytes, os::page_bytes()), 0};
  std::uint64_t from = header_.data_offset;
  for (std::size_t i = 0; i <= count; ++i) {
    const std::uint64_t to = align_down(live[i].begin, os::page_bytes());
    if (to > from) (void)os::punch_hole(lock_.number(), from, to - from).ok();
    if (i < count) from = std::max(from, *try_align_up(live[i].end, os::page_bytes()));
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
  if (reaps) reap_briefly();
  if (is_own()) retire_lingering();
}

}  // namespace berth::internal::share
