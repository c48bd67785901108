// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "berth/base/device_key.h"
#include "berth/record/tag.h"

// Counts of what is allocated and freed, by device and tag, for the whole process: the cheap half of the profiler (observe/profiler.h).
//
// Every thread counts in a table of its own, with plain stores; whoever reads adds up all tables without stopping anyone. What a thread has
// in use of one tag is made known to the others each time it has changed by kPublish bytes, and the peak is taken from what is known: so it is
// exact while one thread allocates, and off by at most that much for each further one.
namespace berth {

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

constexpr std::int64_t kTallyPublish = 64 * 1024;

// Begins from nothing; false when one runs. Ends it. REQUIRES, of both: not at once with one another.
bool begin_tally() noexcept;
void end_tally() noexcept;
// What was counted so far, or until it ended. Throws bad_alloc.
Tally read_tally();

// Count, when a tally runs.
void count_allocation_in_tally(DeviceKey device, Tag tag, std::size_t bytes) noexcept;
void count_free_in_tally(DeviceKey device, Tag tag, std::size_t bytes) noexcept;
inline void tally_allocation(DeviceKey device, Tag tag, std::size_t bytes) noexcept {
  if (g_tally_session.load(std::memory_order_relaxed) != 0) count_allocation_in_tally(device, tag, bytes);
}
inline void tally_free(DeviceKey device, Tag tag, std::size_t bytes) noexcept {
  if (g_tally_session.load(std::memory_order_relaxed) != 0) count_free_in_tally(device, tag, bytes);
}

}  // namespace berth
