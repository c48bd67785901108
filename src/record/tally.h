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

// Counts of what is allocated and freed, by device and tag, for the whole process: the cheap half of the profiler (observe/profiler.h).
//
// Every thread counts in a table of its own, with plain stores; whoever reads adds up all tables without stopping anyone. What a thread has
// in use of one tag is made known to the others each time it has changed by kTallyPublish bytes, and the peak is taken from what is known: so it is
// exact while one thread allocates, and off by at most that much for each further one.
namespace berth::internal::record {

// The number of the tally that runs, 0 for none. Relaxed: an event while one begins or ends may go either way.
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
  std::vector<TallyRow> devices;              // the same, tags together
  std::array<std::uint64_t, kSizes> sizes{};  // allocations by the bits of their bytes - 1
  std::uint64_t dropped = 0;                  // events that there was no heap to count
};

constexpr std::int64_t kTallyPublish = std::int64_t{1} << 20;

// Begins from nothing; false when one runs. Ends it. REQUIRES, of both: not at once with one another.
bool begin_tally() noexcept;
void end_tally() noexcept;
// What was counted so far, or until it ended. Throws bad_alloc.
Tally read_tally();

// ---- What an event touches, here so that counting it needs no call: the counts of the thread that it happens on.

// What all threads know of one device and tag; in tally.cc.
struct TallyTotal;

// Bytes in use that one thread has not published: how many, and the most there were since it last did. Written by its thread alone.
struct Unpublished {
  Relaxed<std::uint64_t> bytes;  // may be below zero, as all of these wrap
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

// What one thread has of all tags of a device.
struct TallyWhole {
  Unpublished unpublished;
  TallyTotal* total = nullptr;
};

using TallyKey = std::uint64_t;
constexpr TallyKey tally_key(DeviceKey device, Tag tag) noexcept {
  return std::uint64_t{device.kind} << 32 | std::uint64_t{device.index} << 16 | tag.id();
}

// One thread's counts of one device and tag. What every event touches is one line of the processor's cache: programs that work on the memory
// they allocate have emptied that cache when they come back.
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
  Relaxed<std::uint64_t> session;  // the tally that the counts belong to
  TallyWhole first_whole;          // of the first device: here, because most threads use one
  std::array<Relaxed<std::uint64_t>, Tally::kSizes> sizes;

  void count_size(std::size_t bytes) noexcept { TallyCell::add(sizes[static_cast<std::size_t>(std::bit_width(bytes - 1))], 1); }
};

// What a thread finds first: the cell that it used last, one step away.
struct TallyHere {
  std::uint64_t session = 0;    // the front's; where it is not 0, there is a cell
  TallyCell* cell = nullptr;    // the last one
  TallyFront* front = nullptr;  // the thread's, from its first event on
};
extern constinit thread_local TallyHere t_tally [[gnu::tls_model("initial-exec")]];

// Count, when a tally runs.
void count_allocation_in_tally(DeviceKey device, Tag tag, std::size_t bytes) noexcept;
void count_free_in_tally(DeviceKey device, Tag tag, std::size_t bytes) noexcept;

// Whether the thread's last cell is that of the key. REQUIRES: the session is not 0.
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
