// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/pool_walk.h"

#include <algorithm>
#include <vector>

namespace berth::internal::memory {

namespace {

// The walk proceeds in hops. A hop copies a few extents and entries under the mutex; between two hops the
// copies are turned into blocks and runs, and waiting threads get the mutex. The thread caches are not shut: a
// block that a cache hands out or takes back meanwhile may be reported or not. The walk goes by address:
// changes behind it are not reported, and changes ahead of it are. So every address is reported at most once.
class PoolWalk {
 public:
  PoolWalk(const PoolCore& core, const StreamBook& book, const Regions& regions, Snapshot& snapshot)
      : core_(core), book_(book), regions_(regions), snapshot_(snapshot) {
    pieces_.reserve(kMostExtents + 2 * Regions::kMostBlocks);
    smalls_.reserve(kMostEntries);
    // Reserved at once: lists that grow are copied, and page faults dominate the time of a snapshot.
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
    std::uint64_t state;
    std::uint64_t label;
    std::uint64_t cookie;
  };
  struct Piece {
    enum class Kind : std::uint8_t { free, slab, large };
    Kind kind = Kind::free;
    FreeKind free = FreeKind::anyone;
    std::size_t begin = 0;
    std::size_t end = 0;
    std::uint64_t stream_id = 0;
    // A slab: where its blocks begin, and the size of each.
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
    const os::Lock lock(core_.mutex);
    if (!core_.is_open()) return false;
    snapshot_.base = reinterpret_cast<std::uintptr_t>(core_.space.base());
    snapshot_.range_bytes = core_.space.size_bytes();
    snapshot_.page_bytes = core_.page_bytes;
    snapshot_.limit_bytes = core_.budget.limit() == SIZE_MAX ? 0 : core_.budget.limit();
    snapshot_.has_blocks = true;
    book_.for_each_waiting([&](BlockRef block) { waiting_.push_back(block.cookie()); });
    std::ranges::sort(waiting_);
    return true;
  }

  // Copies the next extents and entries. False at the end of the part.
  bool hop(Space::Part part) {
    pieces_.clear();
    smalls_.clear();
    const os::Lock lock(core_.mutex);
    const PoolExtent* extent = extent_at(core_.space.part(part));
    for (std::size_t n = 0; extent != nullptr && pieces_.size() < kMostExtents && n < kMostExtents && smalls_.size() < kMostEntries; ++n) {
      next_ = std::max(next_, extent->begin);
      bookmark_ = extent->index;
      copy(*extent);
      if (next_ < extent->end()) return true;  // a slab with more blocks than a hop has room for
      extent = extent->next;
    }
    return extent != nullptr;
  }

  // The extent where the walk continues, found from one that was near it. Extents that have since been
  // coalesced with others have no bytes.
  const PoolExtent* extent_at(const Extents& part) const BERTH_REQUIRES(core_.mutex) {
    const PoolExtent* const front = part.front();
    const std::size_t split = core_.space.split();
    const PoolExtent* near = core_.space.extent(bookmark_);
    if (near == nullptr || near->bytes == 0 || (near->begin < split) != (front->begin < split)) near = front;
    while (near->begin > next_ && near->previous != nullptr) near = near->previous;
    while (near != nullptr && near->end() <= next_) near = near->next;
    return near;
  }

  void copy(const PoolExtent& extent) BERTH_REQUIRES(core_.mutex) {
    Piece piece{.begin = next_, .end = extent.end()};
    if (extent.state == ExtentState::live && extent.slab != 0) return copy_slab(extent);
    next_ = extent.end();
    if (extent.state == ExtentState::live && extent.begin == piece.begin && copy_region(extent)) return;
    if (extent.state == ExtentState::bare || (extent.state == ExtentState::transit && !extent.has_memory)) return;
    if (extent.state == ExtentState::echo) return;
    // A block that is not handed out yet, that a thread keeps (large_blocks.h), or that was allocated since the
    // walk passed its beginning, is reported as free.
    const BlockRef block(extent.cookie);
    const bool live = block && block->is_live();
    const bool handed_out = live || std::ranges::binary_search(waiting_, extent.cookie);
    if (extent.state == ExtentState::live && block && handed_out && extent.begin == piece.begin) {
      piece.kind = Piece::Kind::large;
      piece.stream_id = book_.id_of(extent.stream);
      piece.requested = extent.requested;
      piece.tag = block->tag().id();
      piece.live = live;
    } else if (extent.stream != 0 && extent.state != ExtentState::transit) {
      piece.free = FreeKind::stream;
      piece.stream_id = book_.id_of(extent.stream);
    }
    pieces_.push_back(piece);
  }

  // All of it in one hop, for which there is room. False when the extent is no region.
  bool copy_region(const PoolExtent& extent) BERTH_REQUIRES(core_.mutex) {
    std::size_t told = extent.begin;
    const auto add_free_up_to = [&](std::size_t end) {
      if (told < end) pieces_.push_back({.kind = Piece::Kind::free, .free = FreeKind::slab, .begin = told, .end = end});
    };
    const bool is_region = regions_.visit_blocks(extent, [&](std::size_t begin, std::size_t bytes, BlockRef block) {
      add_free_up_to(begin);
      told = begin + bytes;
      pieces_.push_back({.kind = Piece::Kind::large,
                         .begin = begin,
                         .end = told,
                         .requested = block->small_bytes(),
                         .tag = block->tag().id(),
                         .live = true});
    });
    if (is_region) add_free_up_to(extent.end());
    return is_region;
  }

  void copy_slab(const PoolExtent& extent) BERTH_REQUIRES(core_.mutex) {
    const Slabs::Look slab = core_.slabs.look(extent.slab);
    const ClassInfo& info = core_.classes[slab.size_class];
    const std::size_t index = (next_ - extent.begin + info.bytes - 1) / info.bytes;
    const std::size_t count = index >= info.blocks ? 0 : std::min(info.blocks - index, kMostEntries - smalls_.size());
    const std::size_t blocks_begin = std::min(extent.begin + index * info.bytes, extent.end());
    Piece piece{.kind = Piece::Kind::slab,
                .begin = next_,
                .end = index + count >= info.blocks ? extent.end() : blocks_begin + count * info.bytes,
                .stream_id = book_.id_of(slab.stream),
                .blocks_begin = blocks_begin,
                .block_bytes = info.bytes,
                .first = smalls_.size(),
                .count = count};
    for (std::size_t i = 0; i < count; ++i) {
      const BlockRef block = slab.first.later(static_cast<std::uint32_t>(index + i));
      smalls_.push_back({block->state.load(), block->label.load(), block.cookie()});
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
      // Freed by another thread, though its owner has not read its inbox yet.
      const bool on_its_way = (small.state & BlockEntry::kSentHome) != 0;
      const bool waits = small.state == 0 && std::ranges::binary_search(waiting_, small.cookie);
      if ((small.state == 0 || on_its_way) && !waits) continue;
      const std::size_t begin = piece.blocks_begin + i * piece.block_bytes;
      add_free(told, begin, piece.stream_id, FreeKind::slab);
      told = begin + piece.block_bytes;
      const std::size_t requested = BlockEntry::bytes_in(small.label);
      add_block(begin, piece.block_bytes, std::min(requested, piece.block_bytes), piece, BlockEntry::tag_in(small.label).id(),
                waits ? BlockState::waiting : BlockState::live);
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

  const PoolCore& core_;
  const StreamBook& book_;
  const Regions& regions_;
  Snapshot& snapshot_;
  std::vector<std::uint64_t> waiting_;  // cookies of blocks that were freed and wait for streams, in order
  std::vector<Piece> pieces_;
  std::vector<Small> smalls_;
  std::size_t next_ = 0;        // where the walk continues
  std::uint32_t bookmark_ = 0;  // an extent near that, by its number
};

}  // namespace

void walk_blocks(const PoolCore& core, const StreamBook& book, const Regions& regions, Snapshot& snapshot) {
  PoolWalk(core, book, regions, snapshot).run();
}

}  // namespace berth::internal::memory
