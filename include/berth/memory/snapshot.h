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

// The state of one allocator, as plain data: its address range, which part of it is committed, the live blocks
// and their tags, what is free, and which streams the rest waits for.
//
//     Snapshot now = default_allocator("cuda:0")->snapshot();
//     for (const SnapshotBlock& block : now.blocks) std::puts(now.tags[block.tag].c_str());
//
// A snapshot can be taken in production. A pool is walked in short hops: each holds the pool's lock for a few
// microseconds, and between two hops waiting threads get the lock; small requests that a thread cache can serve
// continue throughout. So a snapshot of a busy pool is not of one moment. Each hop is atomic, and every address
// is reported at most once: blocks and free runs never overlap, and `figures` are sums over what was seen. When
// nothing is allocated or freed meanwhile, they are those of stats().
//
// A snapshot holds only numbers and strings, and refers to nothing outside: it can be kept, compared, written
// and read back without the process that it describes (observe/snapshot_file.h). Blocks and runs have offsets
// from `base`.
namespace berth {

enum class BlockState : std::uint8_t {
  live,     // handed out
  waiting,  // freed, but streams that used it may have pending work on it
};
BERTH_EXPORT std::string_view to_string(BlockState state) noexcept;

struct SnapshotBlock {
  std::uint64_t offset = 0;     // of its first byte
  std::uint64_t bytes = 0;      // that it occupies, including rounding
  std::uint64_t requested = 0;  // of the request
  std::uint64_t stream_id = 0;  // 0: no stream
  std::uint64_t age_ns = 0;     // since it was allocated; 0: unknown without a tracker (observe/tracker.h)
  std::uint32_t tag = 0;        // in Snapshot::tags; 0: none
  std::uint32_t site = 0;       // in Snapshot::sites; 0: unknown, as above
  BlockState state = BlockState::live;

  std::uint64_t end() const noexcept { return offset + bytes; }
  friend bool operator==(const SnapshotBlock&, const SnapshotBlock&) = default;
};

// Why committed bytes are free, and for which requests.
enum class FreeKind : std::uint8_t {
  anyone,  // any request can use them
  stream,  // requests of that stream can; others once its pending work on them is done
  slab,    // free blocks of a slab, for requests of that size; includes those in thread caches
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

// A committed range of addresses; adjacent ranges are merged.
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
  std::uint64_t requested_bytes = 0;     // by live blocks
  std::uint64_t rounding_bytes = 0;      // what those blocks occupy beyond that
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

  std::uint64_t base = 0;         // what offsets are relative to: the start of the range, or the lowest block
  std::uint64_t range_bytes = 0;  // the allocator's address range; 0: it has none
  std::uint64_t page_bytes = 0;   // the unit in which memory is committed; 0: unknown
  std::uint64_t limit_bytes = 0;  // the most that may be committed; 0: none

  // Strategies without an address range list their blocks, and leave the other lists empty. A strategy that can
  // list nothing (a third party's) has stats alone, and has_blocks is false.
  bool has_blocks = false;
  std::vector<MemoryRun> memory;      // by offset, as all three
  std::vector<SnapshotBlock> blocks;  //
  std::vector<FreeRun> free;          //
  std::vector<StreamWait> streams;    // by id

  std::vector<std::string> tags = {""};   // names; the first is "no tag"
  std::vector<std::string> sites = {""};  // "decoder.cc:118 (grow)"; the first is "unknown"

  SnapshotFigures figures;
  Stats stats;  // the allocator's own, at the beginning

  // The fraction of the free memory outside slabs that is not in its longest run: 0 if it is contiguous, near 1
  // if it is all small fragments.
  double fragmentation() const noexcept;

  // Computes `figures` from the lists; for the code that fills them.
  void sum_up();

  // What is wrong with it, or an empty string: offsets outside the range or out of order, blocks or runs that
  // overlap or are not committed, memory that neither belongs to a block nor is free, indices of tags that do
  // not exist, figures that are not the sums.
  std::string audit() const;

  void write_json(JsonWriter& json) const;
  friend bool operator==(const Snapshot&, const Snapshot&) = default;
};

}  // namespace berth
