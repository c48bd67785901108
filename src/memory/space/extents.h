// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "memory/space/extent.h"
#include "memory/space/node_pool.h"
#include "memory/space/size_bins.h"

// One part of a pool's address range, cut into extents: finding the first free one that fits, cutting and
// coalescing. It knows nothing of devices. Free neighbours in the same state are always coalesced:
//
//     live | cached, clean | bare | cached, stream 3 | live | bare ...            (never: cached, clean | cached, clean)
//
// so a page can be decommitted if and only if it lies in one cached extent. Not thread-safe: the pool locks.
namespace berth::internal::memory {

class Extents {
 public:
  using Nodes = NodePool<PoolExtent>;
  static constexpr std::size_t kNodesPerCut = 2;  // what `cut` may take from the node pool

  // Which cached extent a request gets: the lowest that fits leaves the most room at the other end of the range; the
  // best leaves the least of it over, so that a program which repeats itself finds its blocks where they were.
  enum class Fit : bool { first, best };

  // One bare extent [begin, end), in pages of so many bytes. Throws bad_alloc, and has taken no node then.
  // REQUIRES: a node is reserved.
  Extents(Nodes& nodes, std::size_t begin, std::size_t end, std::size_t page_bytes, Fit fit = Fit::first);
  ~Extents();
  Extents(const Extents&) = delete;
  Extents& operator=(const Extents&) = delete;

  // Makes room for the cached extents of a stream. False when there is no heap.
  bool add_stream(std::uint32_t stream) noexcept;

  // The cached extent with so many bytes that a stream gets: a clean one or one of its own. nullptr when there is
  // none.
  PoolExtent* find_cached(std::size_t bytes, std::uint32_t stream) const noexcept;

  // Makes [begin, begin + bytes) of a free extent an extent of its own in another state, in no tree; what is
  // left stays free. REQUIRES: it lies inside; kNodesPerCut nodes are reserved.
  PoolExtent* cut(PoolExtent* from, std::size_t begin, std::size_t bytes, ExtentState state) noexcept;

  // Frees an extent and coalesces it with neighbours in the same state. Returns the whole.
  //
  // With best fit, what is freed on a stream also takes over clean neighbours: they are its stream's until that is past
  // the free. A block of the stream can lie across both then, and so can a piece that is to move. What was clean can
  // neither return to the device meanwhile nor serve others, so it is no more than what is freed; or than a piece that
  // blocks share, where there are no others (`sole_stream`).
  PoolExtent* free_cached(PoolExtent* extent, std::uint32_t stream, std::uint64_t point) noexcept;
  PoolExtent* free_bare(PoolExtent* extent) noexcept;

  void set_sole_stream(bool sole) noexcept { sole_stream_ = sole; }

  // For extents in no tree: cuts one in two, the first part of so many bytes, and returns the second (REQUIRES:
  // a node is reserved); coalesces one with the next, into the first.
  PoolExtent* split(PoolExtent* extent, std::size_t bytes) noexcept;
  void join_next(PoolExtent* extent) noexcept;

  // The frees of a stream up to a point are done: what they left is clean from now on.
  void clean(std::uint32_t stream, std::uint64_t point) noexcept { pass_on(stream, point, 0, 0); }
  // What the frees of a stream up to a point have left is another's from now on (0: anyone's), as if freed on
  // it with point `as`. False when there was nothing.
  bool pass_on(std::uint32_t from, std::uint64_t point, std::uint32_t to, std::uint64_t as) noexcept;

  const ExtentTree& clean_tree() const noexcept { return tree(0); }
  const ExtentTree& bare_tree() const noexcept { return bare_; }
  // The cached extents of a stream, valid until one is taken or freed. With best fit, requests and frees that the cache
  // serves need no trees: what they have freed enters its tree here.
  const ExtentTree& tree(std::uint32_t stream) const noexcept {
    while (loose_ != nullptr) enter_tree(loose_);
    return cached_[stream];
  }
  std::uint32_t streams() const noexcept { return static_cast<std::uint32_t>(cached_.size()); }
  PoolExtent* front() const noexcept { return front_; }  // the extent with the lowest address

  std::string audit() const;

 private:
  void take_over_clean(PoolExtent* freed) noexcept;
  PoolExtent* join_alike(PoolExtent* extent) noexcept;
  ExtentTree& tree_of(const PoolExtent* extent) noexcept;
  void insert(PoolExtent* extent) noexcept;
  void erase(PoolExtent* extent) noexcept;
  void resized(PoolExtent* extent) noexcept;
  void enter_tree(PoolExtent* loose) const noexcept;
  void unlink_loose(PoolExtent* extent) const noexcept;
  PoolExtent* insert_after(PoolExtent* extent, std::size_t begin, std::size_t bytes) noexcept;

  Nodes& nodes_;
  // By stream; [0] is what any stream may use. Before front_: making it may throw.
  mutable std::vector<ExtentTree> cached_;
  std::vector<std::unique_ptr<SizeBins>> bins_;  // with best fit: the same extents, and those that are loose
  mutable PoolExtent* loose_ = nullptr;          // with best fit: in no tree yet, linked by PoolExtent::left and ::right
  bool sole_stream_ = false;
  PoolExtent* front_;
  ExtentTree bare_;
};

}  // namespace berth::internal::memory
