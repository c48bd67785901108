// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/relaxed.h"
#include "memory/pool/size_classes.h"
#include "memory/pool/slots.h"
#include "os/gate.h"

// The free blocks that one thread keeps for itself, of one pool and for one stream, and its share of the pool's counts. The thread goes in
// and out through the gate, which costs no atomic instruction; the pool, under its mutex, can shut all gates and do with the caches as it
// likes.
//
// A block belongs to the cache it was handed out from. Another thread that frees it sends it home: it puts the slot and the serial in the
// cache's inbox, and the owner, or the pool, takes it from there. So nobody but the owner ever changes a slot, and two threads that free
// the same block at the same moment cannot both succeed: the second message finds another serial.
namespace berth {

class Inbox {
 public:
  struct Message {
    std::uint64_t serial = 0;
    std::uint32_t slot = 0;
    std::uint32_t bytes = 0;
  };
  static constexpr std::uint32_t kEntries = 128;

  // Any thread. False when it is full.
  bool put(Message message) noexcept {
    std::uint32_t tail = tail_.load(std::memory_order_relaxed);
    do {
      // acquire: the reader was done with the entry before it moved the head on.
      if (tail - head_.load(std::memory_order_acquire) >= kEntries) return false;
    } while (!tail_.compare_exchange_weak(tail, tail + 1, std::memory_order_relaxed));
    Entry& entry = entries_[tail % kEntries];
    entry.slot_and_bytes.store(message.slot | std::uint64_t{message.bytes} << 32, std::memory_order_relaxed);
    entry.serial.store(message.serial, std::memory_order_release);  // complete
    return true;
  }

  // The owner. An empty message when there is none, or the next is not complete yet.
  Message get() noexcept {
    const std::uint32_t head = head_.load(std::memory_order_relaxed);
    Entry& entry = entries_[head % kEntries];
    const std::uint64_t serial = entry.serial.load(std::memory_order_acquire);
    if (serial == 0) return {};
    const std::uint64_t rest = entry.slot_and_bytes.load(std::memory_order_relaxed);
    entry.serial.store(0, std::memory_order_relaxed);
    head_.store(head + 1, std::memory_order_release);
    return {serial, static_cast<std::uint32_t>(rest), static_cast<std::uint32_t>(rest >> 32)};
  }

 private:
  struct Entry {
    std::atomic<std::uint64_t> serial{0};  // 0: empty, or being written
    std::atomic<std::uint64_t> slot_and_bytes{0};
  };
  alignas(64) std::atomic<std::uint32_t> tail_{0};
  alignas(64) std::atomic<std::uint32_t> head_{0};
  std::array<Entry, kEntries> entries_;
};

// The free blocks of one size class, last in, first out.
struct Bin {
  static constexpr std::uint32_t kMost = 63;
  std::uint32_t count = 0;
  std::uint32_t capacity = 0;  // count <= capacity <= kMost
  std::array<Slot*, kMost> items;
};
static_assert(sizeof(Bin) == 512);

// Blocks on their way from a cache back to the slabs: collected inside the gate, returned outside it, under the pool's mutex.
class Spill {
 public:
  void add(Slot* slot) noexcept { slots_[count_++] = slot; }
  std::span<Slot* const> slots() const noexcept { return {slots_.data(), count_}; }

 private:
  std::size_t count_ = 0;
  std::array<Slot*, 2 * Bin::kMost + Inbox::kEntries> slots_;  // room for two bins and an inbox, the most that one step gives up
};

// What a cache has counted since the pool last asked.
struct CacheCounts {
  // Bytes; may be below zero, since a thread may free what others allocated. Relaxed keeps the compiler from loading it together with its
  // neighbour: a load that spans what was just stored and what was not has to wait for the store to be over.
  Relaxed<std::uint64_t> in_use_bits;
  std::int64_t peak = 0;  // the most that in_use has been
  std::uint64_t frees = 0;

  std::int64_t in_use() const noexcept { return static_cast<std::int64_t>(in_use_bits.load()); }
  void add(std::size_t bytes) noexcept {
    const std::uint64_t now = in_use_bits.load() + bytes;
    in_use_bits.store(now);
    if (static_cast<std::int64_t>(now) > peak) [[unlikely]]
      peak = static_cast<std::int64_t>(now);
  }
  void remove(std::size_t bytes) noexcept {
    in_use_bits.store(in_use_bits.load() - bytes);
    ++frees;
  }
};

struct ThreadCache {
  static constexpr unsigned kSerialShift = 44;  // a serial is the cache's number and a count
  static constexpr std::size_t kBudget = std::size_t{2} << 20;

  ThreadCache(std::uint32_t number_, std::uint32_t stream_, std::uint64_t stream_id_) noexcept
      : serial(std::uint64_t{number_} << kSerialShift), counted_serial(serial), number(number_), stream(stream_), stream_id(stream_id_) {}

  os::Gate gate;
  std::uint64_t serial;          // of the last block handed out; the owner's
  std::uint64_t counted_serial;  // up to where the pool has counted
  CacheCounts counts;
  const std::uint32_t number;  // from 1
  const std::uint32_t stream;  // the pool's number for it
  const std::uint64_t stream_id;
  std::size_t budget = kBudget;  // kBudget - what the bins' capacities amount to
  SizeClass clock = 0;           // the bin to give up next when the budget is spent
  bool owned = false;            // by a thread that lives; under the pool's mutex
  Inbox inbox;
  std::array<Bin, SizeClasses::kMost> bins;
};

class Pool;

// The caches of the calling thread. The last one used is kept where a request finds it with three loads.
struct CacheFront {
  std::uint64_t pool = 0;  // its allocator id; 0: none
  std::uint64_t stream_id = 0;
  ThreadCache* cache = nullptr;
};

// Not a function: its cost would be that of the request. The library keeps this one small variable in the static block of thread storage.
extern constinit thread_local CacheFront t_front [[gnu::tls_model("initial-exec")]];

class ThreadCaches {
 public:
  // This thread's cache of a pool for a stream, or with a number; nullptr when there is none. The first becomes the front.
  static ThreadCache* find(std::uint64_t pool, std::uint64_t stream_id) noexcept;
  static ThreadCache* find_number(std::uint64_t pool, std::uint32_t number) noexcept;
  // Makes room for one more, and enters it. False when there is no heap, or the thread is ending.
  static bool reserve() noexcept;
  static void enter(const std::shared_ptr<Pool>& pool, std::uint64_t id, ThreadCache* cache) noexcept;
};

}  // namespace berth
