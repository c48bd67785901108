// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/poison.h"
#include "base/relaxed.h"
#include "berth/memory/block.h"
#include "memory/cache/block_table.h"
#include "memory/cache/size_classes.h"
#include "os/lock/gate.h"

// The free blocks that one thread keeps for itself, of one pool and for one stream, and its share of the pool's counts. The thread goes in
// and out through the gate, which costs no atomic instruction; the pool, under its mutex, can shut all gates and do with the caches as it
// likes.
//
// A block belongs to the cache it was handed out from. Another thread that frees it sends it home: it puts the entry and the serial in the
// cache's inbox, and the owner, or the pool, takes it from there. So nobody but the owner ever changes an entry, and two threads that free
// the same block at the same moment cannot both succeed: the second message finds another serial.
namespace berth::internal::memory {

class Inbox {
 public:
  struct Message {
    std::uint64_t serial = 0;
    std::uint32_t entry = 0;
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
    entry.entry_and_bytes.store(message.entry | std::uint64_t{message.bytes} << 32, std::memory_order_relaxed);
    entry.serial.store(message.serial, std::memory_order_release);  // complete
    return true;
  }

  // Whoever has shut the cache's gate: visits the messages that are there, and leaves them.
  template <class Visit>
  void for_each(Visit visit) const noexcept {
    for (std::uint32_t at = head_.load(std::memory_order_relaxed); at != tail_.load(std::memory_order_acquire); ++at) {
      const Entry& entry = entries_[at % kEntries];
      const std::uint64_t serial = entry.serial.load(std::memory_order_acquire);
      const std::uint64_t rest = entry.entry_and_bytes.load(std::memory_order_relaxed);
      if (serial != 0) visit(Message{serial, static_cast<std::uint32_t>(rest), static_cast<std::uint32_t>(rest >> 32)});
    }
  }

  // The owner. An empty message when there is none, or the next is not complete yet.
  Message get() noexcept {
    const std::uint32_t head = head_.load(std::memory_order_relaxed);
    Entry& entry = entries_[head % kEntries];
    const std::uint64_t serial = entry.serial.load(std::memory_order_acquire);
    if (serial == 0) return {};
    const std::uint64_t rest = entry.entry_and_bytes.load(std::memory_order_relaxed);
    entry.serial.store(0, std::memory_order_relaxed);
    head_.store(head + 1, std::memory_order_release);
    return {serial, static_cast<std::uint32_t>(rest), static_cast<std::uint32_t>(rest >> 32)};
  }

 private:
  struct Entry {
    std::atomic<std::uint64_t> serial{0};  // 0: empty, or being written
    std::atomic<std::uint64_t> entry_and_bytes{0};
  };
  alignas(64) std::atomic<std::uint32_t> tail_{0};
  alignas(64) std::atomic<std::uint32_t> head_{0};
  std::array<Entry, kEntries> entries_;
};

// The free blocks of one size class, last in, first out, on a shelf of the cache. Below the first stands a null pointer: who finds that knows
// that the bin is empty, without a count.
class Bin {
 public:
  static constexpr std::uint32_t kMost = 127;
  struct alignas((kMost + 1) * sizeof(BlockEntry*)) Shelf {  // so that any place on it says where it begins
    BlockEntry* items[kMost + 1] = {};
  };

  Bin() noexcept = default;
  Bin(const Bin&) = delete;
  Bin& operator=(const Bin&) = delete;
  void use(Shelf& shelf) noexcept { top_ = limit_ = shelf.items; }  // first of all

  BlockEntry* last() const noexcept { return *top_; }  // nullptr when it is empty
  void drop_last() noexcept { --top_; }                // REQUIRES: there is one
  bool is_full() const noexcept { return top_ == limit_; }
  void add(BlockEntry* entry) noexcept { *++top_ = entry; }  // REQUIRES: it is not full

  // nullptr when it is empty.
  BlockEntry* pop() noexcept {
    BlockEntry* const entry = last();
    if (entry != nullptr) drop_last();
    return entry;
  }
  // False when it is full.
  bool push(BlockEntry* entry) noexcept {
    if (is_full()) return false;
    add(entry);
    return true;
  }

  std::uint32_t count() const noexcept { return static_cast<std::uint32_t>(top_ - items()); }
  std::uint32_t capacity() const noexcept { return static_cast<std::uint32_t>(limit_ - items()); }
  std::span<BlockEntry* const> entries() const noexcept { return {items() + 1, count()}; }  // the longest here first
  void set_capacity(std::uint32_t capacity) noexcept { limit_ = items() + capacity; }       // REQUIRES: count() <= capacity <= kMost
  void remove_first(std::uint32_t count) noexcept;

 private:
  BlockEntry** items() const noexcept {
    return reinterpret_cast<BlockEntry**>(reinterpret_cast<std::uintptr_t>(limit_) & ~(alignof(Shelf) - 1));
  }

  BlockEntry** top_ = nullptr;    // the last item
  BlockEntry** limit_ = nullptr;  // where the last may be
};

// Blocks on their way from a cache back to the slabs: collected inside the gate, returned outside it, under the pool's mutex.
class Spill {
 public:
  void add(BlockEntry* entry) noexcept { entries_[count_++] = entry; }
  std::span<BlockEntry* const> entries() const noexcept { return {entries_.data(), count_}; }

 private:
  std::size_t count_ = 0;
  std::array<BlockEntry*, 2 * Bin::kMost + Inbox::kEntries> entries_;  // room for two bins and an inbox, the most that one step gives up
};

// What every cache of a pool knows of it.
struct PoolFacts {
  std::uintptr_t base = 0;  // of the address range
  EntryRange entries;
  std::size_t small_limit = 0;  // requests up to this are small; not 0
  std::size_t alignment = 0;    // of every small block
  bool poisons = false;         // the address sanitizer is told of what is free
};

class ThreadCache {
 public:
  static constexpr unsigned kSerialShift = 44;  // a serial is the cache's number and a count

  ThreadCache(const PoolFacts& facts, std::uint32_t number_, std::uint32_t stream_, std::uint64_t stream_id_) noexcept
      : gate(facts.small_limit),
        serial(first_serial(number_)),
        where_at_null((std::uint64_t{number_} << BlockEntry::kOwnerShift) - facts.base),
        entries(facts.entries),
        is_fine(facts.alignment <= SizeClasses::kUnit),
        alignment(facts.alignment),
        stream_id(stream_id_),
        number(number_),
        stream(stream_),
        poisons(facts.poisons) {
    for (SizeClass c = 0; c < SizeClasses::kMost; ++c) bins[c].use(shelves[c]);
  }

  struct Taken {
    BlockEntry* entry = nullptr;
    std::uint64_t serial = 0;
  };
  // A free block of at least so many bytes, made live with a label that lacks the bytes; none when the pool itself must see to it. The
  // owner's, and the shortest way there is: no lock, no atomic instruction, one entry touched. What limits it is how long each load waits for
  // the one before: so the bin is found from the bytes alone, and what is known early is written early.
  Taken take(std::size_t bytes, std::uint64_t label) noexcept {
    if (bytes - 1 < gate.approach()) [[likely]] {
      Bin& bin = bins[class_of(bytes)];
      if (BlockEntry* const entry = bin.last()) [[likely]] {
        const std::uint64_t its_serial = count_allocation(bytes);
        bin.drop_last();
        make_live(entry, bytes, label, its_serial);
        gate.leave();
        return {entry, its_serial};
      }
    }
    gate.leave();
    return {};
  }

  // Takes a block back that this cache handed out; false when it did not, when something about the block is not right, or its bin is
  // full: then the pool must see to it.
  bool put(const Block& block) noexcept {
    BlockEntry* const entry = entries.find(block.cookie);
    if (entry == nullptr) [[unlikely]]
      return false;
    const std::size_t bytes = block.bytes;
    const std::uint64_t block_serial = block.serial;
    if (bytes - 1 < gate.approach()) [[likely]] {
      // The class follows from the size, but for over-aligned blocks; reading it from the entry would make the bin wait for the entry.
      const std::size_t size_class = class_of(bytes);
      const std::uint64_t differences =
          (entry->serial.load() ^ block_serial) | (entry->where.load() ^ where(block.data)) |
          ((entry->label.load() ^ (block.allocator_id << BlockEntry::kIdShift | bytes)) & ~BlockEntry::kTagMask) |
          (entry->kind.load() ^ size_class) | entry->mark.load();
      Bin& bin = bins[size_class];
      if (differences == 0 && block_serial != 0 && !bin.is_full()) [[likely]] {
        count_free(bytes);
        bin.add(entry);
        entry->serial.store(0);
        make_untouchable(entry, bytes);
        gate.leave();
        return true;
      }
    }
    gate.leave();
    return false;
  }

  // The same for the large block that stays with the thread: handed out when it is free and of just that size, and taken back.
  Taken take_kept(std::size_t bytes, std::uint64_t label) noexcept {
    Taken taken;
    if (!gate.try_lock()) return taken;
    if (has_kept() && bytes == kept_request) {
      taken = {kept, count_allocation(bytes)};
      ++kept_out;
      kept->label.store(label);
      kept->serial.store(taken.serial);
      if (kAddressSanitizer && poisons) unpoison(address(kept), bytes);
    }
    gate.unlock();
    return taken;
  }
  bool put_kept(BlockEntry* entry, const Block& block) noexcept {
    if (!gate.try_lock()) return false;
    const bool is_it = entry == kept && entry->serial.load() == block.serial && block.serial != 0 && block.bytes == kept_request &&
                       entry->where.load() == where(block.data) && entry->is_of(block.allocator_id);
    if (is_it) {
      --kept_out;
      count_free(block.bytes);
      entry->serial.store(0);
      make_untouchable(entry, block.bytes);
    }
    gate.unlock();
    return is_it;
  }

  // ---- For whoever is inside the gate, or has shut it.

  bool has_kept() const noexcept { return kept != nullptr && kept->serial.load() == 0; }  // and it is free

  // With a label that lacks the bytes. REQUIRES: the entry is this cache's and free.
  std::uint64_t make_live(BlockEntry* entry, std::size_t bytes, std::uint64_t label) noexcept {
    const std::uint64_t its_serial = count_allocation(bytes);
    make_live(entry, bytes, label, its_serial);
    return its_serial;
  }
  void count_free(std::size_t bytes) noexcept { below_peak += static_cast<std::int64_t>(bytes); }

  // Of a block that was freed, to the address sanitizer. Work in a stream may still touch what was freed on it.
  void make_untouchable(const BlockEntry* entry, std::size_t bytes) const noexcept {
    if (kAddressSanitizer && poisons && stream_id == 0) poison(address(entry), bytes);
  }

  // A block that leaves the cache for the slabs.
  void give_up(BlockEntry* entry, Spill& spill) noexcept {
    --from_slabs;
    spill.add(entry);
  }

  // Bytes in use, since the pool last asked: may be below zero, as a thread may free what others allocated. And the most there were.
  std::int64_t in_use() const noexcept { return peak - below_peak; }
  std::int64_t peak_in_use() const noexcept { return peak; }
  void forget_bytes() noexcept { below_peak = peak = 0; }
  // Since the cache was made.
  std::uint64_t allocations() const noexcept { return serial - first_serial(number); }
  std::uint64_t frees() const noexcept;

  // A branch and no arithmetic: where the bin is must not wait for what the cache knows.
  std::size_t class_of(std::size_t bytes) const noexcept {
    std::size_t last = bytes - 1;
    if (!is_fine) [[unlikely]]
      last |= alignment - 1;
    return SizeClasses::of_last_byte(last);
  }
  void* address(const BlockEntry* entry) const noexcept { return reinterpret_cast<void*>(entry->where.load() - where_at_null); }

  os::Gate gate;                      // its pass is the pool's limit for small blocks
  std::uint64_t serial;               // of the last block handed out; the owner's
  const std::uint64_t where_at_null;  // BlockEntry::where of this cache's block at address a is a + this
  std::int64_t below_peak = 0;        // how far the bytes in use are below their peak: only a request that raises the peak has more to do
  const EntryRange entries;
  const bool is_fine;  // the sizes are multiples of the least unit there is
  const std::size_t alignment;
  std::uint64_t stream_id;
  std::int64_t peak = 0;
  std::int64_t from_slabs = 0;  // blocks that have come, less those that have gone back: frees follow from it, and cost nothing
  const std::uint32_t number;   // from 1
  std::uint32_t stream;         // the pool's number for it
  const bool poisons;           // only with the address sanitizer
  std::array<Bin, SizeClasses::kMost> bins;
  std::size_t granted = 0;        // what the bins' capacities amount to
  SizeClass clock = 0;            // the bin to give up next when the budget is spent
  BlockEntry* kept = nullptr;     // of a large block that stays with the thread, live or free (pool_large.cc)
  std::size_t kept_request = 0;   // its bytes, as they were asked for
  std::uint32_t kept_polls = 0;   // how often it came back: the owner's
  std::int64_t kept_out = 0;      // how often one was handed out from here and did not come back here
  bool owned = false;             // by a thread that lives; under the pool's mutex
  Relaxed<std::uint8_t> retired;  // 1: its stream is gone, and its gate stays shut until it is used for another
  Inbox inbox;
  std::array<Bin::Shelf, SizeClasses::kMost> shelves;

 private:
  // The serial of the block.
  std::uint64_t count_allocation(std::size_t bytes) noexcept {
    const std::uint64_t its_serial = serial + 1;
    serial = its_serial;
    std::int64_t below = below_peak - static_cast<std::int64_t>(bytes);
    if (below < 0) [[unlikely]] {
      peak -= below;
      below = 0;
    }
    below_peak = below;
    return its_serial;
  }
  void make_live(BlockEntry* entry, std::size_t bytes, std::uint64_t label, std::uint64_t its_serial) noexcept {
    entry->serial.store(its_serial);
    entry->label.store(label | bytes);
    if (kAddressSanitizer && poisons) unpoison(address(entry), bytes);
  }

  static std::uint64_t first_serial(std::uint32_t number) noexcept { return std::uint64_t{number} << kSerialShift; }
  std::uint64_t where(const void* data) const noexcept { return reinterpret_cast<std::uintptr_t>(data) + where_at_null; }
};

// Who has thread caches: a strategy. A cache goes back to it when its thread ends.
class CacheOwner {
 public:
  // The thread that owned the cache has ended: its blocks are everyone's, and a later thread may have it.
  virtual void retire(ThreadCache* cache) noexcept = 0;

 protected:
  ~CacheOwner() = default;
};

// The cache that the calling thread used last, where the next request finds it with three loads. A pool keeps the streams it knows alive,
// so that the address of one stands for it.
struct CacheFront {
  std::uint64_t allocator = 0;  // the id of the strategy that has the cache; 0: none
  const StreamState* stream = nullptr;
  ThreadCache* cache = nullptr;

  std::uint64_t stream_bits() const noexcept { return reinterpret_cast<std::uintptr_t>(stream); }
};

// Not behind a function, which would cost as much as the rest. The library keeps this one small variable in the static block of thread
// storage.
extern constinit thread_local CacheFront t_front [[gnu::tls_model("initial-exec")]];

class ThreadCaches {
 public:
  // This thread's cache of a pool: for a stream, or with a number; nullptr when there is none. It becomes the front.
  static ThreadCache* find(std::uint64_t allocator, const StreamState* stream) noexcept;
  static ThreadCache* find_number(std::uint64_t allocator, std::uint32_t number) noexcept;
  // Makes room for one more. False when there is no heap, or the thread is ending.
  static bool reserve() noexcept;
  // Lets go of one whose stream is gone, and returns it; nullptr when there is none.
  static ThreadCache* forget_retired(std::uint64_t allocator) noexcept;
  static void enter(std::weak_ptr<CacheOwner> owner, const CacheFront& front) noexcept;
};

}  // namespace berth::internal::memory
