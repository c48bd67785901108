// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/relaxed.h"
#include "berth/base/units.h"
#include "berth/memory/block_source.h"
#include "memory/pool/cache_set.h"
#include "memory/pool/cell_map.h"
#include "memory/pool/pool_core.h"
#include "memory/pool/stream_book.h"
#include "memory/published_list.h"
#include "os/lock/mutex.h"
#include "os/process/fork.h"

// Where threads that would wait for the pool's mutex find medium blocks. A region is an extent that is cut into
// cells; a block has a run of them. The regions are spread over shards, each with a mutex of its own:
//
//     obtain ─► the thread's own shard ─► any shard that has room and is not locked ─► the first one that is
//
// so that a thread waits only if every region with room is in use at this moment. A shard's mutex is locked
// after the pool's, or alone.
//
// To the space a region is one live extent, and what is free in it serves medium blocks alone. When that memory
// is needed elsewhere, and when it was not used for a while, the region is dissolved: every block gets an
// extent of its own and is a large block from then on, and the rest returns to the space.
namespace berth::internal::memory {

class Regions final : private os::ForkListener {
 public:
  static constexpr std::size_t kCellBytes = 8_KiB;
  static constexpr std::size_t kRegionBytes = CellMap::kCells * kCellBytes;
  static constexpr std::size_t kMostBytes = 1_MiB;                        // of a block
  static constexpr std::size_t kLeastBytes = 2 * kCellBytes + 1;          // so that the entry behind a block's own is no block's
  static constexpr std::size_t kMostBlocks = kRegionBytes / kLeastBytes;  // in a region
  static_assert(kRegionBytes % kSlabGrain == 0 && kMostBytes < std::size_t{1} << BlockEntry::kTagShift);

  Regions(PoolCore& core, StreamBook& book, CacheSet& caches);
  using os::ForkListener::listen;          // when the pool is complete
  using os::ForkListener::stop_listening;  // first of all when the pool is destroyed

  // ---- Any thread, with the pool's mutex or without.

  bool any() const noexcept { return in_use_.load() != 0; }
  // Where every region with room is locked, it waits for one, or returns false too.
  enum class Wait : bool { no, yes };
  // False: no region has room. REQUIRES: no stream; kLeastBytes to kMostBytes; aligned to kCellBytes at most.
  bool obtain(const Request& request, Block& block, Wait wait) noexcept;
  // Whether the shard of the calling thread has a region.
  bool has_own() const noexcept { return shards_[own_shard()].regions.load() != 0; }
  // Nothing: the entry is not, or no longer, one of a region's.
  struct Freed {
    BlockVerdict verdict = BlockVerdict::ok;
    bool should_poll = false;  // `tidy` and the decay are due
  };
  std::optional<Freed> free(BlockRef entry, const Block& block) noexcept;
  // Within its region. False also if it is not, or no longer, in one.
  bool grow(BlockRef entry, Block& block, std::size_t bytes) noexcept;

  // ---- With the pool's mutex.

  // Makes a region of an extent, of kRegionBytes at a multiple of kSlabGrain, and takes a block of it. False
  // when there is no heap for the tables.
  bool add(PoolExtent* extent, const Request& request, Block& block) noexcept;
  // One thread at a time adds a region: others, which would add one each, do without.
  bool begin_adding() noexcept { return !std::exchange(is_adding_, true); }
  void end_adding() noexcept { is_adding_ = false; }
  // Dissolves the region of a live block, if it is in one; all of them, which releases the mutex. More are added
  // only when threads have waited again. One for which there is no heap stays.
  void dissolve(BlockRef entry, const Block& block) noexcept;
  void dissolve_all() noexcept BERTH_NO_THREAD_ANALYSIS;
  // A period of the decay is over. `dissolve_idle` dissolves some of the regions that were not used in all of it;
  // false when there are no more.
  void end_period() noexcept;
  bool dissolve_idle() noexcept;
  // Returns regions without blocks to the space, but one of each shard, and takes in what the shards have counted.
  void tidy() noexcept;
  // Before the pool grows: dissolves some sparse regions, if all of them together are sparse. False when it did
  // not.
  bool dissolve_sparse() noexcept;

  // While it lives, no region changes. With the pool's mutex.
  class Quiet {
   public:
    explicit Quiet(const Regions& regions) noexcept : regions_(regions) { regions_.lock_all(); }
    ~Quiet() { regions_.unlock_all(); }
    Quiet(const Quiet&) = delete;
    Quiet& operator=(const Quiet&) = delete;

   private:
    const Regions& regions_;
  };
  // Takes in what the shards have counted. REQUIRES: quiet.
  void take_shares() const noexcept;
  // `visit(offset, bytes, entry)` for each block of the region that an extent is, by address: the offset in the
  // pool's range, and what it occupies. False when it is no region. Locks the region's shard.
  template <class Visit>
  bool visit_blocks(const PoolExtent& extent, Visit visit) const;
  std::string audit() const;  // REQUIRES: quiet

 private:
  static constexpr std::uint32_t kMostShards = 64;
  static constexpr std::uint32_t kMostRegions = 1U << 17;             // a TiB
  static constexpr std::uint32_t kLongest = kMostBytes / kCellBytes;  // no block needs a longer run
  static constexpr std::uint32_t kEmpty = kLongest + 1;               // the list of regions without blocks

  struct Region {
    explicit Region(std::uint32_t its_number) noexcept : number(its_number) {}

    const std::uint32_t number;
    Relaxed<std::uint32_t> shard;
    PoolExtent* extent = nullptr;  // nullptr: not in use
    BlockRef first;                // the entry of its first cell
    CellMap cells;
    std::uint32_t blocks = 0;
    std::uint32_t used_in = 0;   // the period in which it was last used
    Region* previous = nullptr;  // in a list of its shard, or of spare ones
    Region* next = nullptr;
    std::uint32_t list = 0;
  };
  struct alignas(64) Shard {
    mutable os::LeafMutex mutex;
    Relaxed<std::uint32_t> longest;                     // the last list that has a region. To be read without the mutex
    std::array<Region*, kEmpty + 1> lists{};            // by the longest free run, or kLongest
    std::array<std::uint64_t, kEmpty / 64 + 1> some{};  // bit by bit: the lists that have regions
    Relaxed<std::uint32_t> regions;                     // how many
    std::size_t cells = 0;                              // in use
    UsageShare usage;
    SerialBatch serials;
    std::uint32_t frees = 0;
  };

  static std::uint32_t cells_of(std::size_t bytes) noexcept { return static_cast<std::uint32_t>((bytes + kCellBytes - 1) / kCellBytes); }
  std::uint32_t own_shard() const noexcept;
  Region* find(BlockRef entry) const noexcept;
  template <class Work>
  bool with_region(BlockRef entry, const Work& work) const noexcept;

  // ---- With the shard's mutex.

  bool take(Shard& shard, const Request& request, Block& block) noexcept;
  static Region* take_cells(Shard& shard, std::uint32_t count, std::uint32_t& first) noexcept;
  static std::uint32_t list_for(const Region& region) noexcept;
  static std::uint32_t next_list(const Shard& shard, std::uint32_t from) noexcept;  // that has a region; above kEmpty: none
  static void link(Shard& shard, Region& region) noexcept;
  static void unlink(Shard& shard, Region& region) noexcept;
  static void relink(Shard& shard, Region& region) noexcept;  // if another list is right now
  bool dissolve(Shard& shard, Region& region) noexcept;       // with the pool's mutex
  template <class Wanted>
  std::size_t dissolve_some(Shard& shard, std::size_t most, Wanted wanted) noexcept;  // locks the shard
  std::string audit(const Shard& shard) const;
  std::string audit(const Region& region) const;

  void lock_all() const noexcept BERTH_NO_THREAD_ANALYSIS;
  void unlock_all() const noexcept BERTH_NO_THREAD_ANALYSIS;
  void before_fork() noexcept override { lock_all(); }
  void after_fork(bool in_child) noexcept override;

  PoolCore& core_;
  StreamBook& book_;
  CacheSet& caches_;
  const std::uint32_t shard_count_;  // a power of two
  const std::unique_ptr<Shard[]> shards_;
  PublishedList<Region, kMostRegions> regions_;
  Region* spare_ = nullptr;        // regions that are not in use. With the pool's mutex
  Relaxed<std::size_t> in_use_;    // regions. Written with the pool's mutex
  Relaxed<std::uint32_t> period_;  // of the decay, by number. Written with the pool's mutex
  bool has_idle_ = false;          // there may be regions that were not used in the last period
  bool is_adding_ = false;
};

template <class Visit>
bool Regions::visit_blocks(const PoolExtent& extent, Visit visit) const {
  return with_region(BlockRef(extent.cookie), [&](Shard&, const Region& region) {
    for (std::uint32_t at = region.cells.next_used(0); at < CellMap::kCells;) {
      const BlockRef entry = region.first.later(at);
      const std::uint32_t cells = cells_of(entry->small_bytes());
      visit(extent.begin + at * kCellBytes, cells * kCellBytes, entry);
      at = region.cells.next_used(at + cells);
    }
  });
}

template <class Work>
bool Regions::with_region(BlockRef entry, const Work& work) const noexcept {
  while (Region* const region = find(entry)) {
    Shard& shard = shards_[region->shard.load()];
    const os::Lock lock(shard.mutex);
    // It may have been dissolved meanwhile, and have become another shard's.
    if (&shards_[region->shard.load()] != &shard || find(entry) != region) continue;
    if (&region->first.group() != &entry.group()) return false;  // a cookie that nobody handed out
    work(shard, *region);
    return true;
  }
  return false;
}

}  // namespace berth::internal::memory
