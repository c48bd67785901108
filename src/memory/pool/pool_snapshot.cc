// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "berth/memory/snapshot.h"
#include "memory/pool/pool.h"

namespace berth::internal::memory {

// A pool's list of blocks, made in hops. A hop copies, under the lock, what a few extents and entries say; between two hops the copies are turned
// into blocks and runs, and whoever waits for the lock has it. Threads' caches are not shut: a block that comes or goes in one meanwhile is told
// or not. The walk goes by address: what has changed behind it stays as it was told, and what changes before it is told as it is found. So
// nothing is told twice, and nothing overlaps.
class PoolWalk {
 public:
  PoolWalk(const Pool& pool, Snapshot& snapshot) : pool_(pool), snapshot_(snapshot) {
    pieces_.reserve(kMostExtents);
    smalls_.reserve(kMostEntries);
    // At once: lists that grow are copied, and memory that the kernel has yet to give is what a snapshot takes longest for.
    const std::size_t expected = snapshot.stats.live_blocks + snapshot.stats.live_blocks / 16 + kMostEntries;
    snapshot.blocks.reserve(expected);
    snapshot.free.reserve(expected);
  }

  void run() {
    if (!begin()) return;
    for (const Space::Part part : {Space::Part::slabs, Space::Part::large}) {
      bool more = true;
      while (more) {
        more = hop(part);
        for (const Piece& piece : pieces_) tell(piece);
      }
    }
  }

 private:
  static constexpr std::size_t kMostExtents = 32;   // in one hop
  static constexpr std::size_t kMostEntries = 128;  // about a microsecond

  // What a hop copies of a small block's entry, and of an extent.
  struct Small {
    std::uint64_t serial;
    std::uint64_t label;
    std::uint32_t mark;
    std::uint32_t number;
  };
  struct Piece {
    enum class Kind : std::uint8_t { free, slab, large };
    Kind kind = Kind::free;
    FreeKind free = FreeKind::anyone;
    std::size_t begin = 0;
    std::size_t end = 0;
    std::uint64_t stream_id = 0;
    // A slab: blocks of so many bytes, the first of them here.
    std::size_t blocks_begin = 0;
    std::size_t block_bytes = 0;
    std::size_t first = 0;  // in smalls_
    std::size_t count = 0;
    // A large block.
    std::size_t requested = 0;
    std::uint32_t tag = 0;
    bool live = false;
  };

  bool begin() {
    const os::Lock lock(pool_.mutex_);
    if (pool_.base() == nullptr) return false;
    snapshot_.base = reinterpret_cast<std::uintptr_t>(pool_.space_.base());
    snapshot_.range_bytes = pool_.space_.size_bytes();
    snapshot_.page_bytes = pool_.page_bytes_;
    snapshot_.limit_bytes = pool_.budget_.limit() == SIZE_MAX ? 0 : pool_.budget_.limit();
    snapshot_.has_blocks = true;
    pool_.extra_.for_each_freed([&](ExtraUses::Key key) { waiting_.push_back(static_cast<std::uint32_t>(key)); });
    std::ranges::sort(waiting_);
    return true;
  }

  // Copies what comes next. False when that was the end of the part.
  bool hop(Space::Part part) {
    pieces_.clear();
    smalls_.clear();
    const os::Lock lock(pool_.mutex_);
    const PoolExtent* extent = extent_at(pool_.space_.part(part));
    for (std::size_t n = 0; extent != nullptr && n < kMostExtents && smalls_.size() < kMostEntries; ++n) {
      next_ = std::max(next_, extent->begin);
      bookmark_ = extent->index;
      copy(*extent);
      if (next_ < extent->end()) return true;  // a slab with more blocks than a hop has room for
      extent = extent->next;
    }
    return extent != nullptr;
  }

  // The extent where the walk goes on, found from one that was near it. Extents that were joined with others since have no bytes.
  const PoolExtent* extent_at(const Extents& part) const BERTH_REQUIRES(pool_.mutex_) {
    const PoolExtent* const front = part.front();
    const std::size_t split = pool_.space_.split();
    const PoolExtent* near = pool_.space_.extent(bookmark_);
    if (near == nullptr || near->bytes == 0 || (near->begin < split) != (front->begin < split)) near = front;
    while (near->begin > next_ && near->previous != nullptr) near = near->previous;
    while (near != nullptr && near->end() <= next_) near = near->next;
    return near;
  }

  void copy(const PoolExtent& extent) BERTH_REQUIRES(pool_.mutex_) {
    Piece piece{.begin = next_, .end = extent.end()};
    if (extent.state == ExtentState::live && extent.slab != 0) return copy_slab(extent);
    next_ = extent.end();
    if (extent.state == ExtentState::bare || (extent.state == ExtentState::transit && !extent.has_memory)) return;
    if (extent.state == ExtentState::echo) return;
    // A block that is not handed out yet, that a thread keeps (pool_large.cc), or that has come since the walk passed its beginning, is told as
    // free.
    const bool live = extent.entry != 0 && pool_.entries_[extent.entry].serial.load() != 0;
    const bool handed_out = live || std::ranges::binary_search(waiting_, extent.entry);
    if (extent.state == ExtentState::live && extent.entry != 0 && handed_out && extent.begin == piece.begin) {
      piece.kind = Piece::Kind::large;
      piece.stream_id = pool_.streams_[extent.stream].id;
      piece.requested = extent.requested;
      piece.tag = pool_.entries_[extent.entry].tag().id();
      piece.live = live;
    } else if (extent.stream != 0 && extent.state != ExtentState::transit) {
      piece.free = FreeKind::stream;
      piece.stream_id = pool_.streams_[extent.stream].id;
    }
    pieces_.push_back(piece);
  }

  void copy_slab(const PoolExtent& extent) BERTH_REQUIRES(pool_.mutex_) {
    const Slabs::Look slab = pool_.slabs_.look(extent.slab);
    const ClassInfo& info = pool_.classes_[slab.size_class];
    const std::size_t index = (next_ - extent.begin + info.bytes - 1) / info.bytes;
    const std::size_t count = index >= info.blocks ? 0 : std::min(info.blocks - index, kMostEntries - smalls_.size());
    const std::size_t blocks_begin = std::min(extent.begin + index * info.bytes, extent.end());
    Piece piece{.kind = Piece::Kind::slab,
                .begin = next_,
                .end = index + count >= info.blocks ? extent.end() : blocks_begin + count * info.bytes,
                .stream_id = pool_.streams_[slab.stream].id,
                .blocks_begin = blocks_begin,
                .block_bytes = info.bytes,
                .first = smalls_.size(),
                .count = count};
    for (std::size_t i = 0; i < count; ++i) {
      const auto number = static_cast<std::uint32_t>(slab.first_entry + index + i);
      const BlockEntry& entry = pool_.entries_[number];
      smalls_.push_back({entry.serial.load(), entry.label.load(), entry.mark.load(), number});
    }
    next_ = piece.end;
    pieces_.push_back(piece);
  }

  // ---- Without the lock.

  void tell(const Piece& piece) {
    if (piece.begin == piece.end) return;
    if (!snapshot_.memory.empty() && snapshot_.memory.back().end() == piece.begin)
      snapshot_.memory.back().bytes += piece.end - piece.begin;
    else
      snapshot_.memory.push_back({piece.begin, piece.end - piece.begin});
    switch (piece.kind) {
      case Piece::Kind::free: return add_free(piece.begin, piece.end, piece.stream_id, piece.free);
      case Piece::Kind::slab: return tell_slab(piece);
      case Piece::Kind::large: break;
    }
    add_block(piece.begin, piece.end - piece.begin, piece.requested, piece, piece.tag, piece.live ? BlockState::live : BlockState::waiting);
  }

  void tell_slab(const Piece& piece) {
    std::size_t told = piece.begin;
    for (std::size_t i = 0; i < piece.count; ++i) {
      const Small& small = smalls_[piece.first + i];
      // Sent home by another thread, though its owner has not looked yet.
      const bool on_its_way = small.mark != 0 && small.mark == static_cast<std::uint32_t>(small.serial);
      const bool waits = small.serial == 0 && std::ranges::binary_search(waiting_, small.number);
      if ((small.serial == 0 || on_its_way) && !waits) continue;
      const std::size_t begin = piece.blocks_begin + i * piece.block_bytes;
      add_free(told, begin, piece.stream_id, FreeKind::slab);
      told = begin + piece.block_bytes;
      const std::uint64_t requested = small.label & ((1ULL << BlockEntry::kTagShift) - 1);
      add_block(begin, piece.block_bytes, std::min<std::uint64_t>(requested, piece.block_bytes), piece,
                static_cast<std::uint16_t>(small.label >> BlockEntry::kTagShift), waits ? BlockState::waiting : BlockState::live);
    }
    add_free(told, piece.end, piece.stream_id, FreeKind::slab);
  }

  void add_block(std::size_t offset, std::size_t bytes, std::size_t requested, const Piece& piece, std::uint32_t tag, BlockState state) {
    snapshot_.blocks.push_back({.offset = offset,
                                .bytes = bytes,
                                .requested = requested,
                                .stream_id = piece.stream_id,
                                .age_ns = 0,
                                .tag = tag,
                                .site = 0,
                                .state = state});
  }

  void add_free(std::size_t begin, std::size_t end, std::uint64_t stream_id, FreeKind kind) {
    if (begin == end) return;
    FreeRun* const last = snapshot_.free.empty() ? nullptr : &snapshot_.free.back();
    if (last != nullptr && last->end() == begin && last->kind == kind && last->stream_id == stream_id)
      last->bytes += end - begin;
    else
      snapshot_.free.push_back({begin, end - begin, stream_id, kind});
  }

  const Pool& pool_;
  Snapshot& snapshot_;
  std::vector<std::uint32_t> waiting_;  // entries of blocks that were freed and wait for streams, in order
  std::vector<Piece> pieces_;
  std::vector<Small> smalls_;
  std::size_t next_ = 0;        // where the walk goes on
  std::uint32_t bookmark_ = 0;  // an extent near that, by its number
};

void Pool::list_blocks(Snapshot& snapshot) const { PoolWalk(*this, snapshot).run(); }

}  // namespace berth::internal::memory
