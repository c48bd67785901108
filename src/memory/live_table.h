// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "berth/memory/block.h"
#include "memory/judge.h"

// The live blocks, by address: a hash table with open addressing. It exists because nothing in a block's own
// memory can be trusted (it may be on a device, or not ours at all), and because looking up a block must never
// allocate. Not thread-safe: its owner locks.
namespace berth::internal::memory {

struct LiveEntry {
  void* data = nullptr;  // nullptr: the entry is empty
  std::size_t bytes = 0;
  std::uint64_t serial = 0;
  std::uint64_t stream_id = 0;
  std::uint64_t allocator_id = 0;  // the allocator that the block must be freed through
  Tag tag;
  std::uint8_t alignment_log2 = 0;
  bool freed_in_hold = false;  // freed while the device was held, and not yet returned to it
  bool has_users = false;      // streams use it, or may have pending work on it

  std::size_t alignment() const noexcept { return std::size_t{1} << alignment_log2; }
  KnownBlock known() const noexcept {
    return {.bytes = bytes,
            .alignment = alignment(),
            .serial = serial,
            .stream_id = stream_id,
            .allocator_id = allocator_id,
            .tag = tag,
            .live = !freed_in_hold};
  }
};

class LiveTable {
 public:
  std::size_t size() const noexcept { return size_; }

  // The entry at an address, or nullptr.
  LiveEntry* find(const void* data) noexcept {
    if (capacity_ == 0) return nullptr;
    for (std::size_t at = home(data);; at = next(at)) {
      if (entries_[at].data == data) return &entries_[at];
      if (entries_[at].data == nullptr) return nullptr;
    }
  }

  // Inserts an entry for the address, which the caller fills in; returns nullptr, with nothing changed, when
  // there is no heap to grow. REQUIRES: the address is not in the table.
  LiveEntry* insert(void* data) noexcept {
    if (2 * (size_ + 1) > capacity_ && !grow()) [[unlikely]]
      return nullptr;
    LiveEntry* const entry = empty_entry(data);
    entry->data = data;
    ++size_;
    return entry;
  }

  // REQUIRES: `entry` came from find, and nothing was inserted or erased since.
  void erase(LiveEntry* entry) noexcept {
    // Backward-shift deletion: every later entry of the probe run that may be at the gap moves there, so that
    // searches never stop early.
    auto hole = static_cast<std::size_t>(entry - entries_.get());
    for (std::size_t at = next(hole); entries_[at].data != nullptr; at = next(at)) {
      const std::size_t wanted = home(entries_[at].data);
      const bool between = hole <= at ? (hole < wanted && wanted <= at) : (hole < wanted || wanted <= at);
      if (between) continue;
      entries_[hole] = entries_[at];
      hole = at;
    }
    entries_[hole].data = nullptr;
    --size_;
  }

  // The first entry at index `from` or later that was freed in a hold, or nullptr; `from` becomes its index.
  // Erasing moves entries only towards the gap, so continuing from there misses only those that wrap around the
  // end.
  LiveEntry* find_freed_in_hold(std::size_t& from) noexcept {
    for (; from < capacity_; ++from) {
      if (entries_[from].data != nullptr && entries_[from].freed_in_hold) return &entries_[from];
    }
    return nullptr;
  }

  template <class Visit>
  void for_each(Visit visit) const {
    for (std::size_t at = 0; at < capacity_; ++at) {
      if (entries_[at].data != nullptr) visit(entries_[at]);
    }
  }

 private:
  static constexpr std::size_t kFirst = 64;

  std::size_t home(const void* data) const noexcept {
    // Fibonacci hashing: the multiplication spreads the address over the high bits; the low bits of addresses
    // are all alike.
    return static_cast<std::size_t>((reinterpret_cast<std::uintptr_t>(data) * 0x9e3779b97f4a7c15ULL) >> shift_);
  }
  std::size_t next(std::size_t at) const noexcept { return (at + 1) & (capacity_ - 1); }

  LiveEntry* empty_entry(const void* data) noexcept {
    std::size_t at = home(data);
    while (entries_[at].data != nullptr) at = next(at);
    return &entries_[at];
  }

  bool grow() noexcept {
    const std::size_t bigger = capacity_ == 0 ? kFirst : 2 * capacity_;
    std::unique_ptr<LiveEntry[]> entries(new (std::nothrow) LiveEntry[bigger]);
    if (!entries) return false;
    entries_.swap(entries);
    const std::size_t old_capacity = std::exchange(capacity_, bigger);
    shift_ = 64 - static_cast<unsigned>(__builtin_ctzll(bigger));
    for (std::size_t i = 0; i < old_capacity; ++i) {
      if (entries[i].data != nullptr) *empty_entry(entries[i].data) = entries[i];
    }
    return true;
  }

  std::size_t size_ = 0;      // 2 * size_ <= capacity_
  std::size_t capacity_ = 0;  // a power of two, or 0
  unsigned shift_ = 0;        // 64 - log2(capacity_)
  std::unique_ptr<LiveEntry[]> entries_;
};

}  // namespace berth::internal::memory
