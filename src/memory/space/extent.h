// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

// A contiguous part of a pool's address range. Every byte of the range is in exactly one extent.
namespace berth::internal::memory {

enum class ExtentState : std::uint8_t {
  live,     // a block, or a slab of small ones
  cached,   // free, with memory under it
  bare,     // free, addresses only
  transit,  // a thread has called the device for it, without the lock; no other may use it
  echo,     // its memory has moved elsewhere; work under way on its stream still finds it here
};

struct PoolExtent {
  std::size_t begin = 0;  // offset in the range
  std::size_t bytes = 0;
  PoolExtent* previous = nullptr;  // neighbours by address
  PoolExtent* next = nullptr;

  // Links of the tree it is in, while cached or bare; left and right of a list, while it is loose (extents.h).
  PoolExtent* parent = nullptr;
  PoolExtent* left = nullptr;
  PoolExtent* right = nullptr;
  std::size_t widest = 0;  // most bytes of any extent at or below this one

  // Links of the bin it is in, while cached in a pool that takes the best fit (size_bins.h).
  PoolExtent* bin_previous = nullptr;
  PoolExtent* bin_next = nullptr;
  std::uint16_t bin = 0;

  bool loose = false;     // cached, and in no tree yet
  bool has_page = false;  // in a tree: it has a whole page
  bool any_page = false;  // one at or below it has

  ExtentState state = ExtentState::bare;
  bool has_memory = false;    // in transit: whether there is memory under it
  std::uint32_t index = 0;    // its index in the node pool
  std::uint32_t stream = 0;   // cached, echo: the stream whose work may still touch it; 0: none
  std::uint32_t keeper = 0;   // live, a block: the number of the thread cache that keeps it
  std::uint32_t slab = 0;     // live, a slab: its number, from 1
  std::uint64_t cookie = 0;   // live, a block: its entry
  std::uint64_t point = 0;    // cached on a stream, echo: the youngest free in it
  std::size_t requested = 0;  // live, a block: the bytes asked for

  std::size_t end() const noexcept { return begin + bytes; }
  bool is_free() const noexcept { return state == ExtentState::cached || state == ExtentState::bare; }
};

// Free extents by address, each with the size of the longest below it, and whether one there has a whole page:
// a treap, whose shape follows from a hash of the nodes' numbers. The first that fits, or has a whole page, is
// found in one descent. Not thread-safe.
class ExtentTree {
 public:
  explicit ExtentTree(std::size_t page_bytes) noexcept : page_(page_bytes) {}

  bool empty() const noexcept { return root_ == nullptr; }
  std::size_t page_bytes() const noexcept { return page_; }
  std::size_t widest() const noexcept { return root_ == nullptr ? 0 : root_->widest; }

  void insert(PoolExtent* extent) noexcept;
  void erase(PoolExtent* extent) noexcept;
  // To be called after its bytes, or its begin within the gap to its neighbours, have changed.
  void resized(PoolExtent* extent) noexcept { refresh_up(extent); }

  // The longest ones, longest first, as many as there is room for. Returns how many there are.
  std::size_t longest(std::span<const PoolExtent*> into) const noexcept;
  // The one that an offset lies in, or nullptr.
  PoolExtent* covering(std::size_t offset) const noexcept;
  // The one with the lowest (highest) address that has at least so many bytes, or nullptr. REQUIRES: bytes > 0,
  // here and below.
  PoolExtent* first(std::size_t bytes) const noexcept;
  PoolExtent* last(std::size_t bytes) const noexcept;
  // The highest one that begins below an offset and has at least so many.
  PoolExtent* last_below(std::size_t offset, std::size_t bytes) const noexcept;
  // The highest one that begins below an offset and has a whole page.
  PoolExtent* last_whole_below(std::size_t offset) const noexcept;
  // The next one after `extent`, upwards or downwards, that has at least so many.
  PoolExtent* next(const PoolExtent* extent, std::size_t bytes) const noexcept;
  PoolExtent* previous(const PoolExtent* extent, std::size_t bytes) const noexcept;

 private:
  void refresh_up(PoolExtent* from) const noexcept;
  bool has_page(const PoolExtent* extent) const noexcept;

  PoolExtent* root_ = nullptr;
  std::size_t page_;
};

}  // namespace berth::internal::memory
