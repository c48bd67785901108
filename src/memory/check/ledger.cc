// SPDX-License-Identifier: Apache-2.0
#include "memory/check/ledger.h"

#include <new>

namespace berth::internal::memory {

using State = LedgerEntry::State;

void LedgerQueue::push(LedgerEntry& entry) noexcept {
  entry.next = nullptr;
  (last_ == nullptr ? first_ : last_->next) = &entry;
  last_ = &entry;
  ++size_;
}

LedgerEntry* LedgerQueue::unlink(LedgerEntry* before, LedgerEntry& entry) noexcept {
  (before == nullptr ? first_ : before->next) = entry.next;
  if (last_ == &entry) last_ = before;
  entry.next = nullptr;
  --size_;
  return &entry;
}

LedgerEntry* Ledger::take() noexcept {
  const auto any = [](const LedgerEntry&) { return true; };
  LedgerEntry* entry = nullptr;
  if (gone_.size() <= kHistory) {
    try {
      entry = &entries_.emplace_back();
      entry->block.cookie = entries_.size();
    } catch (const std::bad_alloc&) {  // then reuse an old one
    }
  }
  if (entry == nullptr) entry = gone_.take(any);
  if (entry == nullptr) return nullptr;
  const std::uint64_t cookie = entry->block.cookie;
  *entry = {};
  entry->block.cookie = cookie;
  return entry;
}

void Ledger::put_back(LedgerEntry& entry) noexcept {
  entry.state = State::unused;
  entry.block.serial = 0;
  entry.block.data = nullptr;
  gone_.push(entry);
}

bool Ledger::enter(LedgerEntry& entry, Block& block) noexcept {
  LiveEntry* const live = usage_.reserve(block.tag) ? live_.insert(block.data) : nullptr;
  if (live == nullptr) return false;
  block.cookie = live->serial = entry.block.cookie;
  block.serial = next_serial_++;
  entry.block = block;
  entry.state = State::live;
  usage_.count_allocation(entry.block.tag, entry.block.bytes);
  return true;
}

LedgerEntry* Ledger::find(const Block& block) noexcept {
  if (block.serial == 0) return find_by_address(block.data);
  if (block.cookie == 0 || block.cookie > entries_.size()) return nullptr;
  LedgerEntry& entry = entries_[block.cookie - 1];
  return entry.block.serial == block.serial ? &entry : nullptr;
}

LedgerEntry* Ledger::find_by_address(const void* data) noexcept {
  if (const LiveEntry* const live = live_.find(data)) return &entries_[live->serial - 1];
  // Only an erroneous call gets here, so it may be slow.
  LedgerEntry* latest = nullptr;
  for (LedgerEntry& entry : entries_) {
    const bool later = latest == nullptr || entry.block.serial > latest->block.serial;
    if (entry.state != State::unused && entry.block.data == data && later) latest = &entry;
  }
  return latest;
}

BlockVerdict Ledger::judge(const LedgerEntry* entry, const Block& block) const noexcept {
  if (entry != nullptr && entry->block.data != block.data) return BlockVerdict::foreign;  // found by its serial
  return memory::judge(entry, block, next_serial_);
}

void Ledger::leave(LedgerEntry& entry) noexcept {
  live_.erase(live_.find(entry.block.data));
  entry.state = State::leaving;
  usage_.count_free(entry.block.tag, entry.block.bytes);
}

void Ledger::quarantine(LedgerEntry& entry) noexcept {
  entry.state = State::quarantined;
  quarantined_.push(entry);
  quarantined_bytes_ += entry.block.bytes;
}

void Ledger::forget(LedgerEntry& entry) noexcept {
  entry.state = State::gone;
  gone_.push(entry);
}

std::string Ledger::audit() const {
  std::size_t live = 0;
  std::size_t live_bytes = 0;
  std::size_t quarantined = 0;
  std::size_t quarantined_bytes = 0;
  std::size_t gone = 0;
  for (const LedgerEntry& entry : entries_) {
    live += entry.state == State::live ? 1 : 0;
    live_bytes += entry.state == State::live ? entry.block.bytes : 0;
    quarantined += entry.state == State::quarantined ? 1 : 0;
    quarantined_bytes += entry.state == State::quarantined ? entry.block.bytes : 0;
    gone += entry.state == State::gone ? 1 : 0;
  }
  if (live != live_.size() || live != usage_.live_blocks() || live_bytes != usage_.in_use_bytes())
    return "check: the live blocks and the counts disagree";
  if (quarantined != quarantined_.size() || quarantined_bytes != quarantined_bytes_) return "check: the quarantine and its sum disagree";
  if (gone > gone_.size()) return "check: an entry that is gone is in no queue";
  return usage_.audit("check");
}

}  // namespace berth::internal::memory
