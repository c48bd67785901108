// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <new>

#include "os/lock/mutex.h"

// A hash table that maps equal keys to the same small number, for ever. Looking up a known key is lock-free: a
// bucket is set once, to an entry that never changes or moves. The table is bounded, so that hostile input
// cannot make it grow without limit. Any thread.
namespace berth::internal::record {

// The key is copied into its entry. `Traits::hash(probe)` and `Traits::equal(key, probe)` look up a probe.
template <class Key, class Traits>
class Interner {
 public:
  static constexpr std::uint32_t kMost = 65535;

  // The number of the key, 1 to kMost; 0 when the table is full or the heap is exhausted.
  template <class Probe>
  std::uint32_t intern(const Probe& probe) noexcept {
    const std::uint32_t start = static_cast<std::uint32_t>(Traits::hash(probe));
    if (const std::uint32_t known = find(probe, start)) return known;
    std::unique_ptr<Entry> made = make(probe);
    if (!made) return 0;
    const os::Lock lock(mutex_);
    if (const std::uint32_t known = find(probe, start)) return known;  // another thread inserted it
    if (count_ == kMost) return 0;
    made->number = ++count_;
    std::uint32_t at = start & kMask;
    while (entries_[at].load(std::memory_order_relaxed) != nullptr) at = (at + 1) & kMask;
    Entry* const entry = made.release();
    // release: a thread that loads the pointer sees the entry complete.
    numbers_[entry->number].store(entry, std::memory_order_release);
    entries_[at].store(entry, std::memory_order_release);
    return entry->number;
  }

  // The key of a number, or nullptr when there is none.
  const Key* key(std::uint32_t number) const noexcept {
    if (number == 0 || number > kMost) return nullptr;
    const Entry* const entry = numbers_[number].load(std::memory_order_acquire);
    return entry == nullptr ? nullptr : &entry->key;
  }

 private:
  static constexpr std::uint32_t kEntries = 131072;  // at most half full
  static constexpr std::uint32_t kMask = kEntries - 1;

  struct Entry {
    Key key;
    std::uint32_t number = 0;
  };

  template <class Probe>
  static std::unique_ptr<Entry> make(const Probe& probe) noexcept {
    try {
      return std::unique_ptr<Entry>(new Entry{Key(probe)});
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }

  template <class Probe>
  std::uint32_t find(const Probe& probe, std::uint32_t start) const noexcept {
    for (std::uint32_t at = start & kMask;; at = (at + 1) & kMask) {
      const Entry* const entry = entries_[at].load(std::memory_order_acquire);
      if (entry == nullptr) return 0;
      if (Traits::equal(entry->key, probe)) return entry->number;
    }
  }

  os::Mutex mutex_;
  std::uint32_t count_ BERTH_GUARDED_BY(mutex_) = 0;
  std::array<std::atomic<Entry*>, kEntries> entries_{};
  std::array<std::atomic<Entry*>, kMost + 1> numbers_{};
};

// The singleton Table of a type, made by the first caller that can allocate it; nullptr until then.
template <class Table>
Table* made_once() noexcept {
  static std::atomic<Table*> made{nullptr};
  Table* known = made.load(std::memory_order_acquire);
  if (known != nullptr) [[likely]]
    return known;
  auto* const fresh = new (std::nothrow) Table;
  if (fresh == nullptr) return nullptr;
  // Two threads may race; one table wins.
  if (made.compare_exchange_strong(known, fresh, std::memory_order_acq_rel)) return fresh;
  delete fresh;
  return known;
}

}  // namespace berth::internal::record
