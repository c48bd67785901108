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

// The thread cache: the free blocks that one thread keeps, of one pool and for one stream, and its share of the
// pool's counts. The owning thread enters and leaves through the gate, which costs no atomic instruction; the
// pool, under its mutex, can close all gates and access the caches.
//
// A block belongs to the cache that handed it out. Another thread frees it remotely: it marks the entry as sent
// home, in one atomic operation in which one of several threads succeeds, and puts it into the cache's inbox,
// from which the owner, or the pool, takes it. If the owner frees the block at the same moment, without an
// atomic operation, the message finds another serial.
namespace berth::internal::memory {

class Inbox {
 public:
  struct Message {
    std::uint64_t serial = 0;
    BlockRef block;
  };
  static constexpr std::uint32_t kEntries = 128;

  // Any thread. Returns false when the inbox is full, or closed.
  bool put(Message message) noexcept {
    std::uint64_t tail = tail_.load(std::memory_order_relaxed);
    do {
      // acquire: pairs with the release store in get(), so that the reader is done with the entry.
      if (tail - head_.load(std::memory_order_acquire) >= kEntries) return false;
    } while (!tail_.compare_exchange_weak(tail, tail + 1, std::memory_order_relaxed));
    Entry& entry = entries_[tail % kEntries];
    entry.cookie.store(message.block.cookie(), std::memory_order_relaxed);
    entry.serial.store(message.serial, std::memory_order_release);  // release: the message is complete
    return true;
  }

  // Visits the messages that are there, and leaves them. REQUIRES: the caller has closed the cache's gate.
  template <class Visit>
  void for_each(Visit visit) const noexcept {
    for (std::uint64_t at = head_.load(std::memory_order_relaxed); at != tail(); ++at) {
      const Entry& entry = entries_[at % kEntries];
      const std::uint64_t serial = entry.serial.load(std::memory_order_acquire);
      if (serial != 0) visit(Message{serial, BlockRef(entry.cookie.load(std::memory_order_relaxed))});
    }
  }

  // Owner only. Returns an empty message when there is none, or the next is not complete yet.
  Message get() noexcept {
    const std::uint64_t head = head_.load(std::memory_order_relaxed);
    Entry& entry = entries_[head % kEntries];
    const std::uint64_t serial = entry.serial.load(std::memory_order_acquire);
    if (serial == 0) return {};
    const BlockRef block(entry.cookie.load(std::memory_order_relaxed));
    entry.serial.store(0, std::memory_order_relaxed);
    head_.store(head + 1, std::memory_order_release);
    return {serial, block};
  }

  // Accepts no more messages, and waits until those that were begun are complete. REQUIRES: as for for_each.
  void close() noexcept;
  void open() noexcept { tail_.fetch_and(~kClosed, std::memory_order_relaxed); }

 private:
  static constexpr std::uint64_t kClosed = std::uint64_t{1} << 63;  // in the tail: then it looks full

  struct Entry {
    std::atomic<std::uint64_t> serial{0};  // 0: empty, or being written
    std::atomic<std::uint64_t> cookie{0};
  };
  std::uint64_t tail() const noexcept { return tail_.load(std::memory_order_acquire) & ~kClosed; }

  alignas(64) std::atomic<std::uint64_t> tail_{0};
  alignas(64) std::atomic<std::uint64_t> head_{0};
  std::array<Entry, kEntries> entries_;
};

// The free blocks of one size class, a LIFO stack on a shelf, which a bin gets with its first capacity. Below
// the first is a null reference as a sentinel, so that an empty bin is recognized without a count.
class Bin {
 public:
  static constexpr std::uint32_t kMost = 127;

  Bin() noexcept { top_ = limit_ = kNoShelf.items; }
  ~Bin();
  Bin(const Bin&) = delete;
  Bin& operator=(const Bin&) = delete;

  BlockRef last() const noexcept { return *top_; }  // null when empty
  void drop_last() noexcept { --top_; }             // REQUIRES: not empty
  bool is_full() const noexcept { return top_ == limit_; }
  void add(BlockRef block) noexcept { *++top_ = block; }  // REQUIRES: !is_full()

  // Returns null when empty.
  BlockRef pop() noexcept {
    const BlockRef block = last();
    if (block) drop_last();
    return block;
  }
  // Returns false when full.
  bool push(BlockRef block) noexcept {
    if (is_full()) return false;
    add(block);
    return true;
  }

  std::uint32_t count() const noexcept { return static_cast<std::uint32_t>(top_ - items()); }
  std::uint32_t capacity() const noexcept { return static_cast<std::uint32_t>(limit_ - items()); }
  std::span<const BlockRef> blocks() const noexcept { return {items() + 1, count()}; }  // oldest first
  // False when there is no heap for a shelf. REQUIRES: count() <= capacity <= kMost.
  bool set_capacity(std::uint32_t capacity) noexcept {
    if (!has_shelf() && !add_shelf()) return false;
    limit_ = items() + capacity;
    return true;
  }
  void remove_first(std::uint32_t count) noexcept;

 private:
  struct alignas((kMost + 1) * sizeof(BlockRef)) Shelf {  // so that any address in it gives its start
    BlockRef items[kMost + 1] = {};
  };
  static Shelf kNoShelf;  // of bins without capacity; only the sentinel is ever read, and nothing written

  bool has_shelf() const noexcept { return items() != kNoShelf.items; }
  bool add_shelf() noexcept;
  BlockRef* items() const noexcept { return reinterpret_cast<BlockRef*>(reinterpret_cast<std::uintptr_t>(limit_) & ~(alignof(Shelf) - 1)); }

  BlockRef* top_;    // the last item
  BlockRef* limit_;  // the last address that top_ may have
};

// Blocks that move from a cache back to the slabs: collected inside the gate, returned outside it, under the
// pool's mutex.
class Spill {
 public:
  void add(BlockRef block) noexcept { blocks_[count_++] = block; }
  std::span<const BlockRef> blocks() const noexcept { return {blocks_.data(), count_}; }

 private:
  std::size_t count_ = 0;
  // Room for two bins and an inbox, the most that one step moves.
  std::array<BlockRef, 2 * Bin::kMost + Inbox::kEntries> blocks_;
};

// What every cache knows of its pool.
struct PoolFacts {
  EntryRange entries;
  std::size_t small_limit = 0;  // requests up to this are small; not 0
  std::size_t alignment = 0;    // of every small block
  bool poisons = false;         // reports free memory to the address sanitizer
};

class ThreadCache {
 public:
  ThreadCache(const PoolFacts& facts, std::uint32_t number_) noexcept
      : gate(facts.small_limit),
        last_serial(BlockEntry::make_serial(number_, 0)),
        entries(facts.entries),
        is_fine(facts.alignment <= SizeClasses::kUnit),
        alignment(facts.alignment),
        number(number_),
        poisons(facts.poisons) {}

  struct Taken {
    std::uint64_t cookie;  // 0: there is none
    std::uint64_t serial;
    void* data;
  };
  // Takes a free block of at least that many bytes, and makes it live with a label (BlockEntry::make_label); an
  // empty result means that the pool itself must serve the request. Owner only. This is the fastest path: no
  // lock, no atomic instruction, one entry touched. It is bound by the latency of dependent loads, so the bin
  // is found from the bytes alone, and values that are known early are stored early.
  Taken take(std::size_t bytes, std::uint64_t label) noexcept {
    if (bytes - 1 < gate.approach()) [[likely]] {
      const SizeClass size_class = class_of(bytes);
      Bin& bin = bins[size_class];
      if (const BlockRef block = bin.last()) [[likely]] {
        const std::uint64_t its_serial = count_allocation(bytes);
        bin.drop_last();
        void* const data = block->data_in_bin();
        make_live(block, size_class, bytes, label, its_serial);
        gate.leave();
        return {block.cookie(), its_serial, data};
      }
    }
    gate.leave();
    return {};
  }

  // Frees a block that this cache handed out; returns false when it did not, when the block does not match its
  // entry, or its bin is full: then the pool must handle it.
  bool put(const Block& block, std::uint64_t allocator_id) noexcept {
    if (!entries.has(block.cookie)) [[unlikely]]
      return false;
    const BlockRef entry(block.cookie);
    const std::size_t bytes = block.bytes;
    const std::uint64_t block_serial = block.serial;
    if (bytes - 1 < gate.approach()) [[likely]] {
      // The class follows from the size, except for over-aligned blocks; reading it from the entry would make
      // the bin wait for that load.
      const SizeClass size_class = class_of(bytes);
      const std::uint64_t label = allocator_id << BlockEntry::kIdShift | BlockEntry::class_and_bytes(size_class, bytes);
      const std::uint64_t differences = (entry->state.load() ^ block_serial) | (block_serial ^ last_serial) >> BlockEntry::kOwnerShift |
                                        entry.differs_from(block.data) | ((entry->label.load() ^ label) & ~BlockEntry::kTagMask);
      Bin& bin = bins[size_class];
      if (differences == 0 && !bin.is_full()) [[likely]] {  // the serial is not 0: this cache's number is not
        count_free(bytes);
        bin.add(entry);
        entry->put_in_bin(block.data);
        make_untouchable(entry, bytes);
        gate.leave();
        return true;
      }
    }
    gate.leave();
    return false;
  }

  // The same for the large block that the cache keeps: it is handed out if it is free and of exactly that size,
  // and freed.
  Taken take_kept(std::size_t bytes, std::uint64_t label) noexcept {
    Taken taken{};
    if (!gate.try_lock()) return taken;
    if (has_kept() && bytes == kept_request) {
      taken = {kept.cookie(), count_allocation(bytes), kept.data()};
      ++kept_out;
      kept->label.store(label);
      kept->state.store(taken.serial);
      if (kAddressSanitizer && poisons) unpoison(kept.data(), bytes);
    }
    gate.unlock();
    return taken;
  }
  bool put_kept(BlockRef entry, const Block& block) noexcept {
    if (!gate.try_lock()) return false;
    const bool is_it = entry == kept && entry->state.load() == block.serial && block.serial != 0 && block.bytes == kept_request &&
                       entry.differs_from(block.data) == 0 && entry->is_of(block.allocator_id);
    if (is_it) {
      --kept_out;
      count_free(block.bytes);
      entry->state.store(0);
      make_untouchable(entry, block.bytes);
    }
    gate.unlock();
    return is_it;
  }

  // ---- REQUIRES: the caller is inside the gate, or has closed it.

  // Whether it keeps a large block that is free.
  bool has_kept() const noexcept { return kept && !kept->is_live(); }

  // With a label of BlockEntry::make_label. REQUIRES: the block is this cache's and free.
  std::uint64_t make_live(BlockRef block, SizeClass size_class, std::size_t bytes, std::uint64_t label) noexcept {
    const std::uint64_t its_serial = count_allocation(bytes);
    make_live(block, size_class, bytes, label, its_serial);
    return its_serial;
  }
  void count_free(std::size_t bytes) noexcept { below_peak += static_cast<std::int64_t>(bytes); }

  // Poisons a freed block for the address sanitizer, unless it has a stream: pending work may still touch it.
  void make_untouchable(BlockRef block, std::size_t bytes) const noexcept {
    if (kAddressSanitizer && poisons && stream_id == 0) poison(block.data(), bytes);
  }

  // Puts a free block into a bin; false when that is full.
  static bool put_in_bin(Bin& bin, BlockRef block) noexcept {
    if (!bin.push(block)) return false;
    block->put_in_bin(block.data());
    return true;
  }
  // Moves a block from the cache to the slabs.
  void give_up(BlockRef block, Spill& spill) noexcept {
    --from_slabs;
    spill.add(block);
  }

  // The bytes in use since the pool last collected them, and their peak. May be negative, as a thread may free
  // what others allocated.
  std::int64_t in_use() const noexcept { return peak - below_peak; }
  std::int64_t peak_in_use() const noexcept { return peak; }
  void forget_bytes() noexcept { below_peak = peak = 0; }
  // Since the cache was created.
  std::uint64_t allocations() const noexcept { return earlier_serials + (last_serial & kCountMask); }
  std::uint64_t frees() const noexcept;

  // A branch instead of arithmetic: the address of the bin must not depend on a load from the cache.
  SizeClass class_of(std::size_t bytes) const noexcept {
    std::size_t last = bytes - 1;
    if (!is_fine) [[unlikely]]
      last |= alignment - 1;
    return SizeClasses::of_last_byte(last);
  }

  os::Gate gate;                // its pass is the pool's limit for small blocks
  std::uint64_t last_serial;    // of the block handed out last: the cache's number above a count; owner only
  std::int64_t below_peak = 0;  // peak minus bytes in use: only a request that raises the peak does more
  EntryRange entries;           // as far as this thread knows it; owner only
  const bool is_fine;           // the alignment is no coarser than the size classes' unit
  const std::size_t alignment;
  std::uint64_t stream_id = 0;
  std::int64_t peak = 0;
  std::uint64_t earlier_serials = 0;  // before the count in last_serial began anew
  std::int64_t from_slabs = 0;        // blocks received less those returned: gives frees() without a counter
  const std::uint32_t number;         // from 1
  std::uint32_t stream = 0;           // its number in the pool
  const bool poisons;                 // only with the address sanitizer
  std::array<Bin, SizeClasses::kMost> bins;
  std::size_t granted = 0;                    // the sum of the bins' capacities, in bytes
  SizeClass clock = 0;                        // the bin to shrink next when the budget is spent
  BlockRef kept;                              // the large block that the cache keeps, live or free
  std::size_t kept_request = 0;               // its requested bytes
  std::uint32_t kept_polls = 0;               // how often it was freed here; owner only
  std::int64_t kept_out = 0;                  // kept blocks handed out less those freed here
  const StreamState* stream_state = nullptr;  // of its stream; owner only
  std::uint32_t next_idle = 0;                // in a list of caches without a thread; guarded by the pool's mutex
  Relaxed<std::uintptr_t> thread;             // its owner (ThreadCaches::this_thread), 0: none. Written with the pool's mutex
  Relaxed<std::uint8_t> retired;              // 1: its stream is gone, and its gate stays closed until it is reused
  Inbox inbox;

 private:
  static constexpr std::uint64_t kCountMask = (std::uint64_t{1} << BlockEntry::kOwnerShift) - 1;

  // Returns the serial of the block.
  std::uint64_t count_allocation(std::size_t bytes) noexcept {
    std::uint64_t its_serial = last_serial + 1;
    if ((its_serial & kCountMask) == 0) [[unlikely]] {  // not into the cache's number
      earlier_serials += kCountMask + 1;
      its_serial -= kCountMask + 1;
    }
    last_serial = its_serial;
    std::int64_t below = below_peak - static_cast<std::int64_t>(bytes);
    if (below < 0) [[unlikely]] {
      peak -= below;
      below = 0;
    }
    below_peak = below;
    return its_serial;
  }
  void make_live(BlockRef block, SizeClass size_class, std::size_t bytes, std::uint64_t label, std::uint64_t its_serial) noexcept {
    block->state.store(its_serial);
    block->label.store(label | BlockEntry::class_and_bytes(size_class, bytes));
    if (kAddressSanitizer && poisons) unpoison(block.data(), bytes);
  }
};

// A strategy that has thread caches. A cache is returned to it when its thread ends.
class CacheOwner {
 public:
  // The thread that owned the cache has ended: any request may take its blocks, and a later thread may own it.
  virtual void thread_ended(ThreadCache* cache) noexcept = 0;

 protected:
  ~CacheOwner() = default;
};

// The cache that the calling thread used last, which the next request finds with three loads. A pool keeps the
// streams that it knows alive, so that the address of a stream identifies it.
struct CacheFront {
  std::uint64_t allocator = 0;  // the id of the strategy that has the cache; 0: none
  const StreamState* stream = nullptr;
  ThreadCache* cache = nullptr;

  std::uint64_t stream_bits() const noexcept { return reinterpret_cast<std::uintptr_t>(stream); }
};

// Accessed directly, because a function call would cost as much as the rest. The library keeps this one small
// variable in static TLS (initial-exec).
extern constinit thread_local CacheFront t_front [[gnu::tls_model("initial-exec")]];

class ThreadCaches {
 public:
  // The calling thread, among all that live; not 0.
  static std::uintptr_t this_thread() noexcept { return reinterpret_cast<std::uintptr_t>(&t_front); }
  static bool is_own(const ThreadCache& cache) noexcept { return cache.thread.load() == this_thread(); }

  // This thread's cache of a pool, by stream; nullptr when there is none. It becomes the front cache.
  static ThreadCache* find(std::uint64_t allocator, const StreamState* stream) noexcept;
  // Makes room for one more. Returns false when there is no heap, or the thread is ending.
  static bool reserve() noexcept;
  // Removes a cache whose stream is gone, and returns it; nullptr when there is none.
  static ThreadCache* forget_retired(std::uint64_t allocator) noexcept;
  static void enter(std::weak_ptr<CacheOwner> owner, const CacheFront& front) noexcept;
};

}  // namespace berth::internal::memory
