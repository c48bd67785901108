// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/relaxed.h"
#include "berth/base/device_key.h"
#include "berth/record/tag.h"

// Process-wide counts of allocations and frees by device and tag: the cheap half of the profiler
// (observe/profiler.h).
//
// Every thread counts in its own table, with plain stores; a reader sums all tables without stopping any
// thread. A thread publishes its bytes in use of one tag each time they have changed by kTallyPublish, and the
// peak is that of the published sum: it is exact while one thread allocates, and off by at most that much for
// each further thread.
namespace berth::internal::record {

// The number of the running tally, 0 for none. Relaxed: an event during its begin or end may or may not be
// counted.
inline constinit std::atomic<std::uint64_t> g_tally_session{0};

struct TallyCounts {
  std::int64_t bytes = 0;
  std::int64_t peak_bytes = 0;
  std::uint64_t allocations = 0;
  std::uint64_t frees = 0;
  std::uint64_t allocated_bytes = 0;
  std::uint64_t freed_bytes = 0;
};

struct TallyRow {
  DeviceKey device;
  Tag tag;
  TallyCounts counts;
};

struct Tally {
  static constexpr std::size_t kSizes = 64;

  std::vector<TallyRow> tags;                 // in the order of first use
  std::vector<TallyRow> devices;              // the same, summed over tags
  std::array<std::uint64_t, kSizes> sizes{};  // allocations by bit_width(bytes - 1)
  std::uint64_t dropped = 0;                  // events that were not counted, for lack of heap
};

constexpr std::int64_t kTallyPublish = std::int64_t{1} << 20;

// Starts a tally from zero (false when one is running), and ends it. REQUIRES, of both: no concurrent calls.
bool begin_tally() noexcept;
void end_tally() noexcept;
// The counts so far, or at the end of the tally. Throws bad_alloc.
Tally read_tally();

// ---- The thread-local counts that an event touches, in the header so that counting is inlined.

// The published counts of one device and tag; in tally.cc.
struct TallyTotal;

// Bytes in use that one thread has not published: the current value, and its maximum since the last
// publication. Written by its thread alone.
struct Unpublished {
  Relaxed<std::uint64_t> bytes;  // may be negative: arithmetic is modulo 2^64
  Relaxed<std::uint64_t> most;

  std::int64_t now() const noexcept { return static_cast<std::int64_t>(bytes.load()); }
  std::int64_t high() const noexcept { return static_cast<std::int64_t>(most.load()); }

  void change(std::int64_t by, TallyTotal* const& total) noexcept {
    const std::int64_t sum = now() + by;
    bytes.store(static_cast<std::uint64_t>(sum));
    if (sum > high()) most.store(static_cast<std::uint64_t>(sum));
    if (sum >= kTallyPublish || sum <= -kTallyPublish) [[unlikely]]
      publish(sum, *total);
  }
  void publish(std::int64_t sum, TallyTotal& total) noexcept;
  void clear() noexcept {
    bytes.store(0);
    most.store(0);
  }
};

// One thread's counts of a device, over all tags.
struct TallyWhole {
  Unpublished unpublished;
  TallyTotal* total = nullptr;
};

using TallyKey = std::uint64_t;
constexpr TallyKey tally_key(DeviceKey device, Tag tag) noexcept {
  return std::uint64_t{device.kind} << 32 | std::uint64_t{device.index} << 16 | tag.id();
}

// One thread's counts of one device and tag. What every event touches fits in one cache line: programs that
// work on the memory they allocate have evicted it before the next event.
struct alignas(64) TallyCell {
  TallyKey key = 0;
  TallyWhole* whole = nullptr;  // of the device
  Unpublished own;
  Relaxed<std::uint64_t> allocations;
  Relaxed<std::uint64_t> frees;
  Relaxed<std::uint64_t> allocated_bytes;
  Relaxed<std::uint64_t> freed_bytes;

  TallyTotal* total = nullptr;

  static void add(Relaxed<std::uint64_t>& count, std::uint64_t more) noexcept { count.store(count.load() + more); }
  void change(std::int64_t by) noexcept {
    own.change(by, total);
    whole->unpublished.change(by, whole->total);
  }
  void count_allocation(std::size_t bytes) noexcept {
    add(allocations, 1);
    add(allocated_bytes, bytes);
    change(static_cast<std::int64_t>(bytes));
  }
  void count_free(std::size_t bytes) noexcept {
    add(frees, 1);
    add(freed_bytes, bytes);
    change(-static_cast<std::int64_t>(bytes));
  }
  void clear() noexcept {
    own.clear();
    for (Relaxed<std::uint64_t>* const count : {&allocations, &frees, &allocated_bytes, &freed_bytes}) count->store(0);
  }
};

struct alignas(64) TallyFront {
  Relaxed<std::uint64_t> session;  // of the tally that the counts belong to
  TallyWhole first_whole;          // of the first device: inline, as most threads use one device
  std::array<Relaxed<std::uint64_t>, Tally::kSizes> sizes;

  // Blocks have at least 1 byte; the remainder keeps 0 bytes, for which bit_width is 64, inside the table.
  void count_size(std::size_t bytes) noexcept {
    TallyCell::add(sizes[static_cast<std::size_t>(std::bit_width(bytes - 1)) % Tally::kSizes], 1);
  }
};

// The thread-local entry point: caches the cell that the thread used last.
struct TallyHere {
  std::uint64_t session = 0;    // the front's; unless 0, `cell` is set
  TallyCell* cell = nullptr;    // the last one used
  TallyFront* front = nullptr;  // of the thread, from its first event on
};
extern constinit thread_local TallyHere t_tally [[gnu::tls_model("initial-exec")]];

// The slow paths, for the first event of a cell.
void count_allocation_in_tally(DeviceKey device, Tag tag, std::size_t bytes) noexcept;
void count_free_in_tally(DeviceKey device, Tag tag, std::size_t bytes) noexcept;

// Whether the thread's cached cell is that of the key. REQUIRES: the session is not 0.
inline bool is_last_cell(const TallyHere& here, std::uint64_t session, TallyKey key) noexcept {
  return here.session == session && here.cell->key == key;
}
inline void tally_allocation(DeviceKey device, Tag tag, std::size_t bytes) noexcept {
  const std::uint64_t session = g_tally_session.load(std::memory_order_relaxed);
  if (session == 0) return;
  if (const TallyHere& here = t_tally; is_last_cell(here, session, tally_key(device, tag))) [[likely]] {
    here.cell->count_allocation(bytes);
    here.front->count_size(bytes);
  } else {
    count_allocation_in_tally(device, tag, bytes);
  }
}
inline void tally_free(DeviceKey device, Tag tag, std::size_t bytes) noexcept {
  const std::uint64_t session = g_tally_session.load(std::memory_order_relaxed);
  if (session == 0) return;
  if (const TallyHere& here = t_tally; is_last_cell(here, session, tally_key(device, tag))) [[likely]]
    here.cell->count_free(bytes);
  else
    count_free_in_tally(device, tag, bytes);
}

}  // namespace berth::internal::record
