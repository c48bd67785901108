// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "memory/space/address_range.h"
#include "memory/space/extents.h"
#include "memory/space/page_view.h"
#include "memory/space/page_window.h"
#include "memory/space/piece_borders.h"
#include "memory/space/pins.h"

// The extents of a pool's whole range, both parts of it, and their transitions between live, cached, bare and
// in transit. It knows addresses and no device, and counts nothing: PageAccounts does. Not thread-safe: the
// pool locks.
namespace berth::internal::memory {

// Neighbours in transit, up to an offset.
struct Transit {
  PoolExtent* first = nullptr;
  std::size_t end = 0;
};

class ExtentMap {
 public:
  explicit ExtentMap(const PageRules& rules) noexcept : rules_(rules) {}

  // False when there is no heap for the tables; it is not open then.
  bool open(const AddressRange& range) noexcept;
  void close() noexcept { range_.base = nullptr; }
  const AddressRange& range() const noexcept { return range_; }  // its base is nullptr unless open
  const PageRules& rules() const noexcept { return rules_; }

  // REQUIRES: open, for all that follow.
  const Extents& part(PagePart which) const noexcept { return *parts_[static_cast<std::size_t>(which)]; }
  Extents& part_of(std::size_t offset) noexcept { return *parts_[offset < range_.split ? 0 : 1]; }
  PoolExtent* extent(std::uint32_t index) const noexcept { return nodes_.at(index); }
  const PieceBorders& borders() const noexcept { return borders_; }
  std::size_t longest_cached() const noexcept;
  // Reserves the nodes of so many extents. False when there is no heap.
  bool reserve_nodes(std::size_t count) noexcept { return nodes_.reserve(count); }

  std::size_t table_bytes() const noexcept { return nodes_.bytes(); }

  // Whether all requests are of one stream, as far as is known (Extents::free_cached).
  void set_sole_stream(bool sole) noexcept {
    for (const auto& part : parts_) part->set_sole_stream(sole);
  }
  // Makes room for the extents of a stream. False when there is no heap.
  bool add_stream(std::uint32_t stream) noexcept;
  // The frees of a stream up to a point are over.
  void clean(std::uint32_t stream, std::uint64_t point) noexcept;
  // Another stream may get this number from now on.
  void forget_stream(std::uint32_t stream) noexcept;
  bool pass_on(std::uint32_t from, std::uint64_t point, std::uint32_t to, std::uint64_t as) noexcept;
  bool is_over(std::uint32_t stream, std::uint64_t point) const noexcept { return stream == 0 || point <= done_[stream]; }

  // ---- live extents. REQUIRES: as for Extents::cut and split

  // [begin, begin + bytes) of a cached extent.
  PoolExtent* make_live(PoolExtent* from, std::size_t begin, std::size_t bytes) noexcept;
  PoolExtent* free_live(PoolExtent* extent, std::uint32_t stream, std::uint64_t point) noexcept;
  PoolExtent* split_live(PoolExtent* extent, std::size_t bytes) noexcept;
  void join_live(PoolExtent* extent) noexcept;  // with the next
  std::size_t pinned_bytes() const noexcept { return pins_.bytes(); }

  // ---- into transit. REQUIRES: Extents::kNodesPerCut nodes are reserved for each extent that is touched

  // What a window covers: cached memory just as far as the block goes, bare addresses in whole pages, of so
  // many bytes, and some ahead.
  Transit enter(const PageWindow& window, std::size_t page_bytes, std::size_t ahead) noexcept;
  // A span of what was freed on a stream; with 0, of what no pending work can touch.
  PoolExtent* withdraw(const PageSpan& span, std::uint32_t stream) noexcept;
  PoolExtent* withdraw_bare(const PageSpan& span) noexcept;

  // ---- out of it

  // Makes it cached for the stream, or for all if its work is done by now; `put_back` restores its former
  // stream.
  PoolExtent* free_cached(PoolExtent* extent, std::uint32_t stream, std::uint64_t point) noexcept;
  PoolExtent* put_back(PoolExtent* extent) noexcept { return free_cached(extent, extent->stream, extent->point); }
  // To be called when its memory is gone.
  void become_bare(PoolExtent* extent) noexcept;
  // Each extent is cached or bare, as it has memory or not.
  void leave(const Transit& transit) noexcept;
  // Makes one extent of all of them; it is still in transit.
  PoolExtent* coalesce(const Transit& transit) noexcept;

  // Notes that it has memory now: committed by one call, or one piece that was moved here.
  void note_memory(PoolExtent* extent) noexcept;

  // For the address sanitizer, where the host may touch the memory: no bytes of the extent have been handed out
  // yet.
  void make_untouchable(const PoolExtent& extent) const noexcept;
  // All of the range may be touched.
  void make_touchable() const noexcept;

  std::string audit() const;

 private:
  void make_touchable(const PoolExtent& extent) const noexcept;
  void pin(const PoolExtent& live) noexcept;
  void unpin(const PoolExtent& live) noexcept;

  const PageRules rules_;
  AddressRange range_;
  Extents::Nodes nodes_;
  std::array<std::unique_ptr<Extents>, 2> parts_;
  PieceBorders borders_;
  Pins pins_;                        // where pieces cost by their number
  std::vector<std::uint64_t> done_;  // by stream: frees up to this one are over
};

}  // namespace berth::internal::memory
