// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdlib>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "berth/base/result.h"

// The memory of a simulated device: a page table. Addresses come from ranges that the host cannot access; the
// bytes live in frames on the host's heap that only this class knows. A committed page gets its frame at the
// first write, so that a device may be larger than the machine it is simulated on.
//
//     address range (no access)  [ page 0 | page 1 | page 2 | page 3 | ... ]
//                                    |        |        |        |
//     frame                        bytes    none    untouched   bytes
//                                      (not committed)
//
// While pages in use are moved, two addresses map to one frame; the old one is an echo, which can be read and
// written, and nothing else.
//
// Not thread-safe: the backend holds its lock around every call.
namespace berth::internal::device {

class SimMemory {
 public:
  // With piece_bytes, memory is committed in pieces, and only whole pieces can be moved and decommitted; 0:
  // page by page.
  SimMemory(std::size_t capacity_bytes, std::size_t page_bytes, std::size_t piece_bytes = 0) noexcept
      : capacity_bytes_(capacity_bytes), page_bytes_(page_bytes), piece_bytes_(piece_bytes) {}
  ~SimMemory();
  SimMemory(const SimMemory&) = delete;
  SimMemory& operator=(const SimMemory&) = delete;

  Result<void*> reserve(std::size_t bytes, std::size_t alignment);
  Status release(void* address, std::size_t bytes);
  Status commit(void* address, std::size_t bytes);
  Status decommit(void* address, std::size_t bytes);
  Status move(void* from, void* to, std::size_t bytes);
  Status begin_move(void* from, void* to, std::size_t bytes);
  Status end_move(void* from, std::size_t bytes);

  // Copies between device and host, and within the device (overlaps allowed). Nothing is written unless every
  // page is committed.
  Status read(void* host, const void* device, std::size_t bytes) const;
  Status write(void* device, const void* host, std::size_t bytes);
  Status copy(void* target, const void* source, std::size_t bytes);
  Status fill(void* device, std::size_t bytes, std::span<const std::byte> pattern);

  // Frees everything, as when the device is lost.
  void clear() noexcept;

  std::size_t committed_bytes() const noexcept { return committed_bytes_; }
  std::size_t reserved_bytes() const noexcept { return reserved_bytes_; }
  std::size_t capacity_bytes() const noexcept { return capacity_bytes_; }

 private:
  // Zero-initialized, for calloc, which costs nothing until used: a range may have millions of pages.
  // A frame is nullptr: not committed; kUntouched: committed, never written; else bytes on the heap.
  using Frame = std::byte*;
  struct FreeTable {
    void operator()(Frame* table) const noexcept { std::free(table); }
  };

  struct Range {
    std::size_t bytes = 0;
    std::unique_ptr<Frame[], FreeTable> pages = {};
    std::vector<bool> begins = {};    // by page: whether a piece border is at its start. Empty: no pieces
    std::size_t committed_bytes = 0;  // == page_bytes_ * number of non-null frames, without echoes
    std::size_t frames = 0;           // on the heap
  };

  // Calls visit(the page's frame, first byte in it, byte count, offset from `address`) for each page of the
  // range, after checking that all are committed.
  template <class Visit>
  Status for_each_piece(const void* address, std::size_t bytes, Visit visit) const;

  bool add_range(std::size_t base, std::size_t bytes) noexcept;  // false: the heap is exhausted

  // Allocates frames for the pages. Fails when the heap is exhausted.
  Status back(void* address, std::size_t bytes);

  void drop_frame(Range& range, Frame& frame) noexcept;
  void drop_frames(Range& range) noexcept;

  struct Pages {
    Range* range;
    std::span<Frame> frames;
  };
  // The pages of [address, address + bytes), or a failure when these are not whole pages of one range.
  Result<Pages> pages(void* address, std::size_t bytes);
  bool is_whole(const Pages& found) const noexcept;
  void note_pieces(const Pages& found) const noexcept;
  const Range* find(std::size_t address, std::size_t bytes, std::size_t& base) const noexcept;

  struct Move {
    Pages source;
    Pages target;
  };
  Result<Move> look_at_move(void* from, void* to, std::size_t bytes);
  void copy_borders(const Move& move) const noexcept;
  bool has_echo(const void* address, std::size_t bytes) const noexcept;
  bool share_frames(std::span<const Frame> frames) noexcept;  // false: the heap is exhausted
  bool give_up_share(Frame frame) noexcept;                   // false: the frame has one address

  const std::size_t capacity_bytes_;
  const std::size_t page_bytes_;
  const std::size_t piece_bytes_;
  std::size_t committed_bytes_ = 0;                        // == sum over ranges, <= capacity_bytes_
  std::size_t reserved_bytes_ = 0;                         // == sum of range sizes
  std::map<std::size_t, Range> ranges_;                    // by first address
  std::map<std::size_t, std::size_t> echoes_;              // bytes by address
  std::unordered_map<Frame, std::size_t> more_addresses_;  // addresses beyond the first, of frames with several
};

}  // namespace berth::internal::device
