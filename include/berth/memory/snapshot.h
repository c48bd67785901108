// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/json.h"
#include "berth/export.h"
#include "berth/memory/stats.h"

// The state of one allocator, as plain data: where its address range is, which of it has memory, which blocks live there and whose they are,
// what is free, and which streams the rest waits for.
//
//     Snapshot now = default_allocator("cuda:0")->snapshot();
//     for (const SnapshotBlock& block : now.blocks) std::puts(now.tags[block.tag].c_str());
//
// Made to be taken in production. A pool is walked in short hops: each holds the pool's lock for a few microseconds, and between two of them
// whoever waits for it has a turn; small requests that a thread's cache can serve go on all the while. So a snapshot of a busy pool is
// not of one moment. Each hop is, and what lies in one place is told once: blocks and free runs never overlap, and `figures` are sums over what
// was seen. When nobody allocates meanwhile, they are those of stats().
//
// Everything is a number or a string of its own: a snapshot can be kept, compared, written and read back without the process it is of
// (observe/snapshot_file.h). All places are offsets from `base`.
namespace berth {

enum class BlockState : std::uint8_t {
  live,     // handed out
  waiting,  // freed, but streams that used it are not known to be past it
};
BERTH_EXPORT std::string_view to_string(BlockState state) noexcept;

struct SnapshotBlock {
  std::uint64_t offset = 0;     // of its first byte
  std::uint64_t bytes = 0;      // that it takes, rounding included
  std::uint64_t requested = 0;  // that were asked for
  std::uint64_t stream_id = 0;  // 0: no stream
  std::uint64_t age_ns = 0;     // since it was allocated; 0: unknown, because nobody watched (observe/tracker.h)
  std::uint32_t tag = 0;        // in Snapshot::tags; 0: none
  std::uint32_t site = 0;       // in Snapshot::sites; 0: unknown, as above
  BlockState state = BlockState::live;

  std::uint64_t end() const noexcept { return offset + bytes; }
  friend bool operator==(const SnapshotBlock&, const SnapshotBlock&) = default;
};

// Why bytes with memory under them are free, and for whom.
enum class FreeKind : std::uint8_t {
  anyone,  // any request may have them
  stream,  // that stream's requests may; others once it is past the work on them
  slab,    // free places between small blocks: requests of that size may have them. Those in the caches of threads are among them
};
BERTH_EXPORT std::string_view to_string(FreeKind kind) noexcept;

struct FreeRun {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t stream_id = 0;
  FreeKind kind = FreeKind::anyone;

  std::uint64_t end() const noexcept { return offset + bytes; }
  friend bool operator==(const FreeRun&, const FreeRun&) = default;
};

// Addresses with memory under them; neighbours are one.
struct MemoryRun {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;

  std::uint64_t end() const noexcept { return offset + bytes; }
  friend bool operator==(const MemoryRun&, const MemoryRun&) = default;
};

// A stream that freed memory waits for.
struct StreamWait {
  std::uint64_t stream_id = 0;
  std::uint64_t bytes = 0;  // free for that stream alone, or waiting for it
  friend bool operator==(const StreamWait&, const StreamWait&) = default;
};

// Sums over the blocks and runs of a snapshot.
//
//     requested + rounding + waiting + free == committed          slab_free <= free         largest_free <= free
struct SnapshotFigures {
  std::uint64_t committed_bytes = 0;     // all memory runs
  std::uint64_t requested_bytes = 0;     // asked for by blocks that live
  std::uint64_t rounding_bytes = 0;      // what those blocks take beyond that
  std::uint64_t waiting_bytes = 0;       // blocks that wait for streams
  std::uint64_t free_bytes = 0;          // all free runs
  std::uint64_t slab_free_bytes = 0;     // free runs inside slabs
  std::uint64_t largest_free_bytes = 0;  // the longest free run outside slabs
  std::uint64_t live_blocks = 0;
  std::uint64_t waiting_blocks = 0;
  friend bool operator==(const SnapshotFigures&, const SnapshotFigures&) = default;
};

struct BERTH_EXPORT Snapshot {
  std::string device;     // "cuda:0"
  std::string allocator;  // its name: "pool"
  std::string settings;   // the options in effect, for people
  std::uint64_t allocator_id = 0;

  std::uint64_t base = 0;         // the address that offsets count from: where the range begins, or the lowest block
  std::uint64_t range_bytes = 0;  // the allocator's address range; 0: it has none
  std::uint64_t page_bytes = 0;   // what is taken from the device at a time; 0: unknown
  std::uint64_t limit_bytes = 0;  // the most that may be committed; 0: none

  // Strategies without a range of their own know their blocks, and leave the others empty. One that can list nothing (it is a third party's)
  // has stats alone, and says so here.
  bool has_blocks = false;
  std::vector<MemoryRun> memory;      // by offset, as all three
  std::vector<SnapshotBlock> blocks;  //
  std::vector<FreeRun> free;          //
  std::vector<StreamWait> streams;    // by id

  std::vector<std::string> tags = {""};   // words; the first is "no tag"
  std::vector<std::string> sites = {""};  // "decoder.cc:118 (grow)"; the first is "unknown"

  SnapshotFigures figures;
  Stats stats;  // as the allocator counts, at the beginning

  // The part of the free memory outside slabs that is not in its longest run: 0 when it is all in one piece, near 1 when it is in crumbs.
  double fragmentation() const noexcept;

  // Computes `figures` from the lists; for whoever fills them.
  void sum_up();

  // What is wrong with it, or an empty string: places outside the range or out of order, blocks or runs that overlap or have no memory under
  // them, memory that neither belongs to a block nor is free, numbers of tags that are not there, figures that are not the sums.
  std::string audit() const;

  void write_json(JsonWriter& json) const;
  friend bool operator==(const Snapshot&, const Snapshot&) = default;
};

}  // namespace berth
